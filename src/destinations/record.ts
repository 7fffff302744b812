/**
 * The data that destinations receive for one generation: plain JSON, built once for all destinations of a workspace. Each
 * kind converts it to its own format. No I/O.
 */
import { hash } from 'node:crypto';
import type { Caller } from '../access/index.ts';
import { cut } from '../base/characters.ts';
import { type Nano, usdFromNano } from '../base/money.ts';
import { OPERATION_NAMES } from '../otlp/index.ts';
import type { Generation } from '../spend/index.ts';

interface RecordedUsage {
  /** All prompt tokens, cached ones included. */
  prompt: number;
  completion: number;
  cacheRead: number;
  cacheWrite: number;
  reasoning: number;
}

export interface GenerationRecord {
  /** `gen-...` */
  id: string;
  /** For the choice of destinations; not sent. */
  workspaceId: string;
  keyId: string;
  region: string;
  keyName: string;
  /** Wall time in ms. */
  startedAt: number;
  endedAt: number;
  /** 32 and 16 hexadecimal digits. */
  traceId: string;
  spanId: string;
  parentSpanId: string | null;
  traceName: string | null;
  /** `generation_name`, else `span_name`, of the request's `trace`. */
  spanName: string | null;
  sessionId: string | null;
  userId: string | null;
  /** `chat`, `text_completion`, `embeddings`, ... */
  operation: string;
  requestedModel: string;
  model: string;
  provider: string | null;
  streamed: boolean;
  /** Null if no status was sent. */
  status: number | null;
  error: { type: string; message: string | null } | null;
  cancelled: boolean;
  finishReason: string | null;
  /** To the first visible content. */
  latencyMs: number | null;
  usage: RecordedUsage | null;
  /** USD. */
  cost: number;
  /** Sent with `broadcast_generation_cost`. USD. */
  costDetails: { upstream: number | null; cacheDiscount: number | null; isByok: boolean } | null;
  /** Sent with `broadcast_generation_identity`. `memberId`: the member who created the key. */
  identity: { organizationId: string; workspaceId: string; keyHash: string; memberId: string | null } | null;
  /** Sent with `broadcast_generation_request_context`. */
  context: {
    requestId: string | null;
    region: string;
    userAgent: string | null;
    referer: string | null;
    title: string | null;
  } | null;
  /** Numbers of the request, such as `temperature`, by their names in the body. */
  parameters: Readonly<Record<string, number>>;
  /** The request's `metadata`, and the members of `trace` that have no meaning of their own. */
  metadata: Readonly<Record<string, unknown>>;
  /** JSON of `{messages}` or `{prompt}`; null unless content is logged. */
  input: string | null;
  /** JSON of `{completion, reasoning, tool_calls}`; null unless content is logged. */
  output: string | null;
}

/** What a record is made of. */
export interface EndedGeneration {
  row: Generation;
  caller: Caller;
  /** As requested; undefined if the request named none. */
  requestedModel: string | undefined;
  parameters: GenerationRecord['parameters'];
  /** The value of the member `trace` of the request's body. */
  trace: unknown;
  contents: { input: string; output: string } | undefined;
  /** Wall time in ms. */
  endedAt: number;
}

const NAMED = ['trace_id', 'trace_name', 'span_name', 'generation_name', 'parent_span_id'];
const PARAMETERS = [
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'temperature',
  'top_p',
  'top_k',
  'seed',
  'frequency_penalty',
  'presence_penalty',
];
const TRACE_DIGITS = 32;
const SPAN_DIGITS = 16;
/** Characters of a name, and of the JSON of a member of `trace` and of all of them together. */
const NAME_LENGTH = 256;
const MEMBER_LENGTH = 4_096;
const METADATA_LENGTH = 16_384;

export function recordOf(ended: EndedGeneration): GenerationRecord {
  const { row, caller, requestedModel, parameters, trace, contents, endedAt } = ended;
  const named = isObject(trace) ? trace : {};
  const { usage } = row;
  // Both ids are parts of one hash.
  const own = hash('sha256', row.id, 'hex');
  return {
    id: row.id,
    workspaceId: row.workspaceId,
    keyId: row.keyId,
    region: row.dataRegion,
    keyName: caller.name,
    startedAt: row.createdAt,
    endedAt: Math.max(endedAt, row.createdAt),
    traceId: idOf(named['trace_id'], TRACE_DIGITS) ?? own.slice(0, TRACE_DIGITS),
    spanId: own.slice(-SPAN_DIGITS),
    parentSpanId: idOf(named['parent_span_id'], SPAN_DIGITS) ?? null,
    traceName: nameOf(named['trace_name']),
    spanName: nameOf(named['generation_name']) ?? nameOf(named['span_name']),
    sessionId: row.sessionId,
    userId: row.externalUser,
    operation: OPERATION_NAMES[row.apiType],
    requestedModel: requestedModel ?? row.model,
    model: row.model,
    provider: row.providerName,
    streamed: row.streamed,
    status: row.status,
    error: row.error && { type: row.error.type, message: row.error.message?.toWellFormed() ?? null },
    cancelled: row.cancelled,
    finishReason: row.finishReason,
    latencyMs: row.latencyMs,
    usage: usage && {
      prompt: usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h,
      completion: usage.output,
      cacheRead: usage.cacheRead,
      cacheWrite: usage.cacheWrite5m + usage.cacheWrite1h,
      reasoning: usage.reasoning,
    },
    cost: usdFromNano(row.costNano),
    costDetails: {
      upstream: usdOrNull(row.upstreamCostNano),
      cacheDiscount: usdOrNull(row.cacheDiscountNano),
      isByok: row.isByok,
    },
    identity: {
      organizationId: row.organizationId,
      workspaceId: row.workspaceId,
      keyHash: caller.keyHash,
      memberId: caller.userId,
    },
    context: {
      requestId: row.requestId,
      region: row.dataRegion,
      userAgent: row.userAgent,
      referer: row.origin === '' ? null : row.origin,
      title: row.title,
    },
    parameters,
    metadata: metadataOf(row.metadata, named),
    input: contents?.input ?? null,
    output: contents?.output ?? null,
  };
}

/** What a destination's settings let it see. */
interface Visibility {
  privacyMode: boolean;
  sendsCost: boolean;
  sendsIdentity: boolean;
  sendsRequestContext: boolean;
}

/** The record as a destination may see it. Error messages may quote inputs and outputs, so they count as such. */
export function shownTo(settings: Visibility, record: GenerationRecord): GenerationRecord {
  const { privacyMode, sendsCost, sendsIdentity, sendsRequestContext } = settings;
  const hidesMore =
    (!sendsCost && record.costDetails !== null) ||
    (!sendsIdentity && record.identity !== null) ||
    (!sendsRequestContext && record.context !== null);
  if (!hidesMore && !privacyMode) return record;
  const error = record.error && { type: record.error.type, message: null };
  return {
    ...record,
    costDetails: sendsCost ? record.costDetails : null,
    identity: sendsIdentity ? record.identity : null,
    context: sendsRequestContext ? record.context : null,
    ...(privacyMode && { input: null, output: null, error }),
  };
}

/** UTF-16 units that a record takes in memory, roughly. */
export function sizeOf({ input, output, metadata }: GenerationRecord): number {
  const extra = Object.keys(metadata).length === 0 ? 0 : JSON.stringify(metadata).length;
  return 2_000 + (input?.length ?? 0) + (output?.length ?? 0) + extra;
}

/** An id of a client as hexadecimal digits: as it is, a UUID without its dashes, or hashed. */
function idOf(value: unknown, digits: number): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  const bare = value.replaceAll('-', '').toLowerCase();
  const isId = bare.length === digits && /^[0-9a-f]+$/.test(bare) && /[^0]/.test(bare);
  return isId ? bare : hashed(value, digits);
}

function hashed(value: string, digits: number): string {
  return hash('sha256', value, 'hex').slice(0, digits);
}

function nameOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? cut(value, NAME_LENGTH) : null;
}

function usdOrNull(nano: Nano | null): number | null {
  return nano === null ? null : usdFromNano(nano);
}

/** @param body the top-level members of the request's body */
export function parametersOf(body: Readonly<Record<string, unknown>>): GenerationRecord['parameters'] {
  const found: Record<string, number> = {};
  for (const name of PARAMETERS) {
    const value = body[name];
    if (typeof value === 'number') found[name] = value;
  }
  return found;
}

/** Members beyond the limits are left out, and counted. */
function metadataOf(
  metadata: Generation['metadata'],
  trace: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  let left = METADATA_LENGTH;
  let omitted = 0;
  for (const [name, value] of [...Object.entries(metadata ?? {}), ...Object.entries(trace)]) {
    if (NAMED.includes(name) && value === trace[name]) continue;
    const length = name.length + (JSON.stringify(value)?.length ?? 0);
    if (length > MEMBER_LENGTH || length > left) omitted += 1;
    else {
      kept[name] = value;
      left -= length;
    }
  }
  return omitted === 0 ? kept : { ...kept, omitted_members: omitted };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
