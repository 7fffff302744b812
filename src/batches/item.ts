/** One item of a batch as a request of its endpoint: the same checks at submission and before it runs. */
import type { Caller } from '../access/index.ts';
import { invalidField } from '../base/errors.ts';
import { type JsonDocument, readDocument } from '../base/json.ts';
import { applyEdits, type Edit } from '../base/json-edits.ts';
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
export type ItemTarget = Pick<Batch, 'endpoint' | 'model' | 'provider' | 'region' | 'shape' | 'headers'>;

const MODEL_LENGTH = 256;

/** @throws GatewayError 400 */
export function modelOf(value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= MODEL_LENGTH) return value;
  throw invalidField('model', `must be a text of 1 to ${MODEL_LENGTH} characters`);
}

/**
 * Makes the request of an item; its id shows that it is one. Without a model of the batch, its body names one.
 * @throws GatewayError as the endpoint itself would, and for what a batch does not support
 */
export function acceptItem(body: Buffer, target: ItemTarget, caller: Caller, now: number): AcceptedRequest {
  const given = readDocument(body);
  checkMembers(given, target);
  const edits = editsOf(target);
  const document = edits.length === 0 ? given : readDocument(applyEdits(given, edits));
  checkOf(target.endpoint)(document);
  const request = accept(FORMATS[target.endpoint], document, caller, now, aboutOf(target));
  if (request.presetId !== undefined) refuseMembers(request.document);
  checkText(request);
  return { ...request, id: request.id.replace(/^gen-/, 'gen-batch-') };
}

function editsOf({ model, provider }: ItemTarget): Edit[] {
  const edits: Edit[] = [];
  if (model !== null) edits.push({ key: 'model', json: JSON.stringify(model) });
  if (provider !== null) edits.push({ key: 'provider', json: JSON.stringify(provider) });
  return edits;
}

/** Members that would have another meaning in a batch than in a request. */
function checkMembers(document: JsonDocument, { endpoint, model, provider }: ItemTarget): void {
  const own = document.member('model');
  if (model === null) modelOf(own);
  else if (own !== undefined && own !== model) throw invalidField('model', `must be ${model}, the model of the batch`);
  if (document.member('stream') === true) throw invalidField('stream', 'must not be true in a batch');
  refuseMembers(document);
  const isEmbedding = endpoint === '/v1/embeddings';
  if (document.member('provider') !== undefined && (isEmbedding || provider !== null)) {
    throw invalidField('provider', 'must be given for the whole batch');
  }
  if (isEmbedding && document.member('input_type') !== undefined) {
    throw invalidField('input_type', 'is not supported in a batch');
  }
}

/** Members that no request of a batch may have, not even through its preset. */
function refuseMembers(document: JsonDocument): void {
  for (const key of ['models', 'fallbacks', 'audio', 'image_config']) {
    if ((document.member(key) ?? null) !== null) throw invalidField(key, 'is not supported in a batch');
  }
}

/** Batches carry text only. */
function checkText({ facts: { media, needs } }: AcceptedRequest): void {
  const kinds = new Set([...(needs?.inputs ?? []), ...(needs?.outputs ?? [])]);
  if (media.images > 0) kinds.add('image');
  if (media.documents > 0) kinds.add('file');
  if (kinds.size > 0) throw invalidField('', `has ${[...kinds].join(', ')} content; a batch carries text only`);
}

function aboutOf({ region, headers }: ItemTarget) {
  return {
    requestId: null,
    region: region as DataRegion,
    userAgent: null,
    origin: '',
    title: null,
    sessionId: null,
    metadata: false,
    headers,
  };
}
