/** One item of a batch as a request of its endpoint: the same checks at submission and before it runs. */
import type { Caller } from '../access/index.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { applyEdits, type Edit, type JsonDocument, readDocument } from '../base/json.ts';
import { storable } from '../base/storable.ts';
import { embedding } from '../formats/embedding/index.ts';
import { chat, messages, responses } from '../formats/index.ts';
import { documentCheck } from '../http/validate.ts';
import { type AcceptedRequest, type AnyFormat, accept } from '../inference/index.ts';
import type { DataRegion } from '../spend/index.ts';
import type { Batch, BatchEndpoint } from './batch.ts';

const FORMATS: Readonly<Record<BatchEndpoint, AnyFormat>> = {
  '/v1/chat/completions': chat,
  '/v1/responses': responses,
  '/v1/messages': messages,
  '/v1/embeddings': embedding,
};

const checks = new Map<BatchEndpoint, (document: JsonDocument) => void>();

function checkOf(endpoint: BatchEndpoint): (document: JsonDocument) => void {
  let check = checks.get(endpoint);
  if (check === undefined) {
    check = documentCheck(FORMATS[endpoint].schema);
    checks.set(endpoint, check);
  }
  return check;
}

/** What all items of a batch have in common. */
export type ItemTarget = Pick<Batch, 'endpoint' | 'model' | 'provider' | 'region'>;

interface SubmittedItem {
  customId: string;
  /** The request as the client wrote it. */
  body: Buffer;
}

const MAX_CUSTOM_ID = 256;

/** Reads one element of `requests`. @throws GatewayError 400 that names it */
export function readItem(bytes: Buffer, index: number): SubmittedItem {
  const path = `requests[${index}]`;
  const document = named(path, undefined, () => readDocument(bytes));
  const customId = document.member('custom_id');
  if (typeof customId !== 'string' || customId === '' || customId.length > MAX_CUSTOM_ID) {
    throw invalidField(`${path}.custom_id`, `must be a text of 1 to ${MAX_CUSTOM_ID} characters`);
  }
  storable(`${path}.custom_id`, customId);
  const other = document.members.find(({ key }) => key !== 'custom_id' && key !== 'body');
  if (other) throw invalidField(`${path}.${other.key.slice(0, 100)}`, 'is not a member of a request');
  const body = document.members.find(({ key }) => key === 'body');
  if (body === undefined || bytes[body.valueStart] !== 0x7b) {
    throw invalidField(`${path}.body`, `must be an object (custom_id ${JSON.stringify(customId)})`);
  }
  return { customId, body: bytes.subarray(body.valueStart, body.valueEnd) };
}

/** Checks an item at submission. @throws GatewayError that names the item and its custom_id */
export function checkItem(
  { customId, body }: SubmittedItem,
  index: number,
  target: ItemTarget,
  caller: Caller,
  now: number,
): AcceptedRequest {
  return named(`requests[${index}]`, customId, () => acceptItem(body, target, caller, now));
}

/** Makes the request of an item. @throws GatewayError as the endpoint itself would, and for what a batch does not support */
export function acceptItem(body: Buffer, target: ItemTarget, caller: Caller, now: number): AcceptedRequest {
  const given = readDocument(body);
  checkMembers(given, target);
  const document = readDocument(applyEdits(given, editsOf(target)));
  checkOf(target.endpoint)(document);
  const request = accept(FORMATS[target.endpoint], document, caller, now, aboutOf(target));
  checkText(request);
  return request;
}

function editsOf({ model, provider }: ItemTarget): Edit[] {
  const edits: Edit[] = [{ key: 'model', json: JSON.stringify(model) }];
  if (provider !== null) edits.push({ key: 'provider', json: JSON.stringify(provider) });
  return edits;
}

/** Members that would have another meaning in a batch than in a request. */
function checkMembers(document: JsonDocument, { endpoint, model, provider }: ItemTarget): void {
  const own = document.member('model');
  if (own !== undefined && own !== model) throw invalidField('model', `must be ${model}, the model of the batch`);
  if (document.member('stream') === true) throw invalidField('stream', 'must not be true in a batch');
  for (const key of ['models', 'fallbacks', 'audio', 'image_config']) {
    if ((document.member(key) ?? null) !== null) throw invalidField(key, 'is not supported in a batch');
  }
  const isEmbedding = endpoint === '/v1/embeddings';
  if (document.member('provider') !== undefined && (isEmbedding || provider !== null)) {
    throw invalidField('provider', 'must be given for the whole batch');
  }
  if (isEmbedding && document.member('input_type') !== undefined) {
    throw invalidField('input_type', 'is not supported in a batch');
  }
}

/** Batches carry text only. */
function checkText({ facts: { media, needs } }: AcceptedRequest): void {
  const kinds = new Set([...(needs?.inputs ?? []), ...(needs?.outputs ?? [])]);
  if (media.images > 0) kinds.add('image');
  if (media.documents > 0) kinds.add('file');
  if (kinds.size > 0) throw invalidField('', `has ${[...kinds].join(', ')} content; a batch carries text only`);
}

/** Names the item in what `work` throws. */
function named<T>(path: string, customId: string | undefined, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const item = customId === undefined ? path : `${path} (custom_id ${JSON.stringify(customId)})`;
    const inside = error.details.path;
    const within = customId === undefined ? path : `${path}.body`;
    throw new GatewayError(error.type, `${item}: ${error.message}`, {
      ...error.details,
      path: inside === undefined || inside === '' ? within : `${within}.${inside}`,
    });
  }
}

function aboutOf({ region }: ItemTarget) {
  return {
    requestId: null,
    region: region as DataRegion,
    userAgent: null,
    origin: '',
    title: null,
    sessionId: null,
    metadata: false,
    headers: {},
  };
}
