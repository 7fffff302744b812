/**
 * Embeddings at services that speak OpenAI's format, which is also the public one, each with a dialect. Request and
 * reply bytes pass through with single members edited wherever the service allows it.
 */
import { stringifyJson } from '../../base/json.ts';
import { applyEdits, type Edit } from '../../base/json-edits.ts';
import { decodeFailure } from '../chat/failure.ts';
import type { Usage } from '../conversation/conversation.ts';
import { type UpstreamFailure, withUsage } from '../conversation/failure.ts';
import {
  countOf,
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  reportedCount,
  textOrUndefined,
} from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { inBatches, mapPlan } from '../direct/batches.ts';
import { GATEWAY_MEMBERS } from '../direct/body.ts';
import { type CallPlan, type DirectTarget, inputUsage, type Reply, type Step } from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import type { EmbeddingAdapter } from './index.ts';
import type { EmbeddingAnswer } from './reply.ts';
import type { EmbeddingInput, EmbeddingRequest, InputPart } from './request.ts';
import { scanReply } from './scan-reply.ts';
import { numbersOf, type Vector } from './vectors.ts';

/** How a service differs from OpenAI. Absent members take the default. */
export interface EmbeddingDialect {
  /** Default `/embeddings`. */
  path?: string;
  /** Most inputs per call. Default: unlimited, the service itself refuses more. */
  maxInputs?: number;
  /** Default true. False: the service accepts only text. */
  takesTokens?: boolean;
  /** Default true. False: `encoding_format` is not sent, and vectors arrive as numbers. */
  takesEncoding?: boolean;
  /** The service's name for `encoding_format`. */
  encodingMember?: string;
  /** The service's name for `dimensions`; null if it has none. */
  dimensionsMember?: string | null;
  /** The service's name for `input_type`; absent if it has none, and then it is not sent. */
  inputTypeMember?: string;
  /** The service's values for the usual input types. Others pass unchanged. */
  inputTypes?: Readonly<Record<string, string>>;
  /** Default true: the hashed end user is sent. */
  takesUser?: boolean;
  /** Multi-part inputs: as in the public format, as Jina expects them, or (absent) unsupported. */
  parts?: 'public' | 'jina';
  /** Base64 holds int8, not float32; vectors are scaled to [-1, 1]. */
  int8?: boolean;
}

/** Other services' names for the two sides of a search. */
const USUAL_TYPES: Readonly<Record<string, string>> = {
  query: 'search_query',
  document: 'search_document',
  passage: 'search_document',
  'retrieval.query': 'search_query',
  'retrieval.passage': 'search_document',
};

export function usualInputType(inputType: string): string {
  return USUAL_TYPES[inputType] ?? inputType.toLowerCase();
}

export function openaiEmbedding(dialect: EmbeddingDialect = {}): EmbeddingAdapter {
  return {
    start(request, target) {
      checkInputs(request, dialect);
      const size = dialect.maxInputs ?? Number.POSITIVE_INFINITY;
      if (request.count <= size) return whole(request, target, dialect);
      const inputs = request.inputs().map((input) => encodeInput(input, dialect));
      const plan = inBatches<Vector>({
        count: request.count,
        size,
        call: (from, to) => ({
          path: dialect.path ?? '/embeddings',
          body: applyEdits(request.document, [
            ...edits(request, target, dialect),
            { key: 'input', json: stringifyJson(inputs.slice(from, to)) },
          ]),
        }),
        read: (reply, from, to) => readBatch(reply, to - from, dialect),
      });
      return mapPlan(plan, (vectors) => ({ vectors }));
    },
    decodeFailure,
  };
}

function whole(request: EmbeddingRequest, target: DirectTarget, dialect: EmbeddingDialect): CallPlan<EmbeddingAnswer> {
  const changes = edits(request, target, dialect);
  if (dialect.parts === 'jina' && isFields(firstInput(request))) {
    changes.push({ key: 'input', json: stringifyJson(request.inputs().map((input) => encodeInput(input, dialect))) });
  }
  return {
    call: { path: dialect.path ?? '/embeddings', body: applyEdits(request.document, changes) },
    read: (reply) => readReply(reply, request.count, dialect),
  };
}

function firstInput({ document }: EmbeddingRequest): unknown {
  return listOf(document.structure['input'])[0];
}

function checkInputs(request: EmbeddingRequest, dialect: EmbeddingDialect): void {
  const first = firstInput(request);
  if (dialect.takesTokens === false && (typeof first === 'number' || Array.isArray(first))) {
    throw new Uncarried('input', 'the service does not accept token ids');
  }
  if (isFields(first) && dialect.parts === undefined) {
    const plain = request.inputs().every((input) => input.type !== 'parts' || plainText(input) !== undefined);
    throw new Uncarried('input', plain ? 'the service does not accept parts' : 'the service does not accept media');
  }
}

/** The text of an input without media; undefined for media or token ids. */
export function plainText(input: EmbeddingInput): string | undefined {
  if (input.type === 'text') return input.text;
  if (input.type === 'tokens' || input.parts.some((part) => part.type !== 'text')) return undefined;
  return input.parts.map((part) => (part as { text: string }).text).join('\n');
}

function encodeInput(input: EmbeddingInput, dialect: EmbeddingDialect): unknown {
  if (input.type === 'text') return input.text;
  if (input.type === 'tokens') return input.tokens;
  if (dialect.parts === 'jina') return encodeJina(input.parts);
  return {
    content: input.parts.map((part) => {
      if (part.type === 'text') return part;
      if (part.type === 'image') return { type: 'image_url', image_url: { url: part.url } };
      const { type, ...content } = part;
      return { type: `input_${type}`, [`input_${type}`]: content };
    }),
  };
}

/** `{text}` or `{image}` per input; `image` is a URL or bare base64. */
function encodeJina(parts: readonly InputPart[]): Fields {
  const [part] = parts;
  if (parts.length > 1 || part === undefined) throw new Uncarried('input', 'the service accepts one part per input');
  if (part.type === 'text') return { text: part.text };
  if (part.type === 'image') return { image: part.url.replace(/^data:[^,]*;base64,/, '') };
  throw new Uncarried('input', 'the service accepts only text and images');
}

function edits(request: EmbeddingRequest, target: DirectTarget, dialect: EmbeddingDialect): Edit[] {
  const { document, dimensions, inputType } = request;
  const body = document.structure;
  const changes: Edit[] = [{ key: 'model', json: JSON.stringify(target.model) }];
  for (const key of GATEWAY_MEMBERS) if (key in body) changes.push({ key, json: undefined });
  if (dialect.takesUser !== false) changes.push({ key: 'user', json: JSON.stringify(target.user) });
  const rename = (key: string, to: string | null | undefined, value: unknown) => {
    if (!(key in body) || to === key) return;
    changes.push({ key, json: undefined });
    if (to && value !== undefined) changes.push({ key: to, json: JSON.stringify(value) });
  };
  // Numbers are the default everywhere, and some services reject the parameter.
  const asks = request.encoding === 'base64' && dialect.takesEncoding !== false;
  rename('encoding_format', asks ? (dialect.encodingMember ?? 'encoding_format') : null, request.encoding);
  const dimensionsMember = dialect.dimensionsMember === undefined ? 'dimensions' : dialect.dimensionsMember;
  if (dimensions !== undefined && dimensionsMember === null) {
    throw new Uncarried('dimensions', 'the service has a fixed vector size');
  }
  rename('dimensions', dimensionsMember, dimensions);
  if (inputType !== undefined) {
    const word = dialect.inputTypes?.[usualInputType(inputType)] ?? inputType;
    const to = dialect.inputTypeMember;
    if (to === undefined || to !== 'input_type') changes.push({ key: 'input_type', json: undefined });
    if (to !== undefined && (to !== 'input_type' || word !== inputType)) {
      changes.push({ key: to, json: JSON.stringify(word) });
    }
  }
  return changes;
}

export function readBatch(reply: Reply, count: number, dialect: EmbeddingDialect): Step<Vector[]> {
  const step = readReply(reply, count, dialect);
  return 'answer' in step ? { ...step, answer: [...step.answer.vectors] } : (step as Step<Vector[]>);
}

function readReply(reply: Reply, count: number, dialect: EmbeddingDialect): Step<EmbeddingAnswer> {
  const { body } = reply;
  const scanned = dialect.int8 ? undefined : scanReply(body);
  if (scanned === undefined) return readSlowly(reply, count, dialect);
  const { members, vectors, complete } = scanned;
  const ordered = inOrder(vectors, count);
  if (ordered === undefined) return readSlowly(reply, count, dialect);
  const member = (key: string): unknown => {
    const range = members.get(key);
    return range && JSON.parse(body.toString('utf8', range.start, range.end));
  };
  const [first] = ordered;
  const uniform = ordered.every(({ encoding }) => encoding === first!.encoding);
  return told(member('usage'), member('id'), {
    vectors: ordered.map(({ encoding, start, end }) => ({ encoding, json: body.subarray(start, end) })),
    ...(complete && uniform && { relay: { body, members, encoding: first!.encoding } }),
  });
}

function readSlowly(reply: Reply, count: number, { int8 }: EmbeddingDialect): Step<EmbeddingAnswer> {
  const read = readObject(reply);
  if ('failure' in read) return read;
  const items = listOf(read.value['data']).map((item) => {
    const { embedding, index } = fieldsOf(item);
    return { embedding, index: typeof index === 'number' ? index : undefined };
  });
  const ordered = inOrder(items, count);
  if (ordered === undefined) return unusable(wrongCount(items.length, count), read.value);
  let vectors: Vector[];
  try {
    vectors = ordered.map(({ embedding }) => vectorOf(embedding, int8 === true));
  } catch {
    return unusable(malformed('values that are not vectors'), read.value);
  }
  return told(read.value['usage'], read.value['id'], { vectors });
}

/** The reply cannot be used, but its work is charged as the service reports it. */
function unusable(failure: UpstreamFailure, { usage }: Fields): { failure: UpstreamFailure } {
  return { failure: withUsage(failure, usageOf(usage)) };
}

function vectorOf(embedding: unknown, int8: boolean): Vector {
  if (typeof embedding !== 'string') return numbersOf(embedding);
  if (embedding === '') throw new TypeError('not a vector');
  if (!int8) return { encoding: 'base64', json: JSON.stringify(embedding) };
  const bytes = Buffer.from(embedding, 'base64');
  return Array.from(new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length), (value) => Math.max(value / 127, -1));
}

/** The items sorted by their index, exactly one per input; undefined otherwise. */
function inOrder<Item extends { index: number | undefined }>(
  items: readonly Item[],
  count: number,
): Item[] | undefined {
  if (items.length !== count) return undefined;
  const ordered = new Array<Item | undefined>(count).fill(undefined);
  for (const [place, item] of items.entries()) {
    const index = item.index ?? place;
    if (!Number.isInteger(index) || index < 0 || index >= count || ordered[index] !== undefined) return undefined;
    ordered[index] = item;
  }
  return ordered as Item[];
}

export function wrongCount(got: number, wanted: number): UpstreamFailure {
  return malformed(`${got} vectors for ${wanted} ${wanted === 1 ? 'input' : 'inputs'}, or not exactly one per input`);
}

function told(usage: unknown, id: unknown, answer: EmbeddingAnswer): Step<EmbeddingAnswer> {
  const counted = usageOf(usage);
  const upstreamId = textOrUndefined(id);
  return {
    answer,
    ...(counted !== undefined && { usage: counted }),
    ...(upstreamId !== undefined && { upstreamId }),
  };
}

/** `prompt_tokens`, else `total_tokens`; undefined if neither is reported. */
function usageOf(value: unknown): Usage | undefined {
  const usage = fieldsOf(value);
  const [prompt, total] = [reportedCount(usage['prompt_tokens']), reportedCount(usage['total_tokens'])];
  if (prompt === undefined && total === undefined) return undefined;
  const tokens = prompt || total || 0;
  const details = fieldsOf(usage['prompt_tokens_details']);
  const image = countOf(details['image_tokens']);
  const audio = countOf(details['audio_tokens']);
  return {
    ...inputUsage(tokens),
    ...(image > 0 && { inputImage: Math.min(image, tokens) }),
    ...(audio > 0 && { inputAudio: Math.min(audio, tokens) }),
  };
}
