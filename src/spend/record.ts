/**
 * The records of a journal, one per line (`lines.ts` writes them). A line torn by a crash fails its checksum.
 *
 * The row of a settled record is a JSON object whose keys are the columns of the table `generations`, so the same text
 * is journalled, held in memory, and sent to PostgreSQL.
 */
import { crc32 } from 'node:zlib';
import { isoTime } from '../base/timestamp.ts';
import type { Usage } from '../formats/conversation/conversation.ts';
import type { Charge } from './budget.ts';
import type { Accepted, Generation, GuardrailMark } from './generation.ts';
import type { Attempt } from './index.ts';

/** I: intent, A: further attempt, P: progress of an open answer, S: settled. */
export type RecordKind = 'I' | 'A' | 'P' | 'S';

/** Amount that a settled generation takes from the lease of one window; `forcedNano` is what the lease did not cover. */
export interface Taken {
  windowId: string;
  nano: bigint;
  forcedNano: bigint;
}

/** A row on its way into the database. */
export interface Entry {
  id: string;
  /** JSON object whose keys are columns. */
  row: string;
  taken: Taken[];
}

export interface Intent {
  accepted: Accepted;
  attempt: Attempt;
  /** Held at `begin`, by budget window. */
  held: { windowId: string; nano: bigint; includeByok: boolean }[];
}

export interface Progress {
  outputBytes: number;
  usage: Usage | null;
  /** Cost of `usage`. */
  charge: Charge | null;
}

/** Kind and JSON of one line without its line feed; undefined unless it is an intact record. */
export function unframe(line: string): { kind: RecordKind; json: string } | undefined {
  const kind = line[0];
  if (kind !== 'I' && kind !== 'A' && kind !== 'P' && kind !== 'S') return undefined;
  if (line[9] !== ' ') return undefined;
  const json = line.slice(10);
  if (line.slice(1, 9) !== crc32(json).toString(16).padStart(8, '0')) return undefined;
  return { kind, json };
}

export function encodeIntent(intent: Intent): string {
  return JSON.stringify([
    intent.accepted,
    attemptFields(intent.attempt),
    intent.held.map((held) => [held.windowId, String(held.nano), held.includeByok]),
  ]);
}

type HeldFields = [windowId: string, nano: string, includeByok: boolean];

export function decodeIntent(json: string): Intent {
  const [accepted, attempt, held] = JSON.parse(json) as [Accepted, AttemptFields, HeldFields[]];
  return {
    accepted,
    attempt: attemptOf(attempt),
    held: held.map(([windowId, nano, includeByok]) => ({ windowId, nano: BigInt(nano), includeByok })),
  };
}

/** @param held total that the request holds with this attempt; absent in journals of earlier versions */
export function encodeAttempt(id: string, attempt: Attempt, held?: Charge): string {
  return JSON.stringify([id, attemptFields(attempt), held && chargeFields(held)]);
}

export function decodeAttempt(json: string): { id: string; attempt: Attempt; held?: Charge } {
  const [id, fields, held] = JSON.parse(json) as [string, AttemptFields, (ChargeFields | null)?];
  return { id, attempt: attemptOf(fields), ...(held && { held: chargeOf(held) }) };
}

export function encodeProgress(id: string, progress: Progress): string {
  const { charge } = progress;
  return JSON.stringify([
    id,
    progress.outputBytes,
    progress.usage === null ? null : { ...progress.usage, native: undefined },
    charge === null ? null : chargeFields(charge),
  ]);
}

export function decodeProgress(json: string): { id: string; progress: Progress } {
  const [id, outputBytes, usage, charge] = JSON.parse(json) as [string, number, Usage | null, ChargeFields | null];
  return {
    id,
    progress: {
      outputBytes,
      usage,
      charge: charge === null ? null : chargeOf(charge),
    },
  };
}

type ChargeFields = [creditNano: string, byokNano: string];

function chargeFields({ creditNano, byokNano }: Charge): ChargeFields {
  return [String(creditNano), String(byokNano)];
}

function chargeOf([creditNano, byokNano]: ChargeFields): Charge {
  return { creditNano: BigInt(creditNano), byokNano: BigInt(byokNano) };
}

/** The id comes first, so that readers can match records without parsing rows. */
export function encodeSettled(entry: Entry): string {
  return settledHead(entry) + entry.row;
}

/** The part before the row. */
export function settledHead({ id, taken }: Pick<Entry, 'id' | 'taken'>): string {
  const fields: unknown[] = [id];
  for (const { windowId, nano, forcedNano } of taken) fields.push([windowId, String(nano), String(forcedNano)]);
  // JSON escapes every control character, so a tab can only be this separator.
  return `${JSON.stringify(fields)}\t`;
}

export function decodeSettled(json: string): Entry {
  const tab = json.indexOf('\t');
  const [id, ...taken] = JSON.parse(json.slice(0, tab)) as [string, ...[string, string, string][]];
  return {
    id,
    row: json.slice(tab + 1),
    taken: taken.map(([windowId, nano, forced]) => ({ windowId, nano: BigInt(nano), forcedNano: BigInt(forced) })),
  };
}

type AttemptFields = [
  model: string,
  endpointId: string | null,
  providerName: string | null,
  isByok: boolean,
  promptTokens: number,
  promptNano: string,
  outputPrice: string,
  earlierNano: string,
  earlierByokNano: string,
];

function attemptFields(attempt: Attempt): AttemptFields {
  return [
    attempt.model,
    attempt.endpointId,
    attempt.providerName,
    attempt.isByok,
    attempt.promptTokens,
    String(attempt.promptNano),
    String(attempt.outputPrice),
    String(attempt.earlier.creditNano),
    String(attempt.earlier.byokNano),
  ];
}

function attemptOf(fields: AttemptFields): Attempt {
  return {
    model: fields[0],
    endpointId: fields[1],
    providerName: fields[2],
    isByok: fields[3],
    promptTokens: fields[4],
    promptNano: BigInt(fields[5]),
    outputPrice: BigInt(fields[6]),
    // Journals of earlier versions have no ninth field.
    earlier: { creditNano: BigInt(fields[7]), byokNano: BigInt(fields[8] ?? '0') },
  };
}

/** Columns of `generations` as JSON values; bigint columns that may exceed 2^53 are strings. */
export interface RowColumns {
  id: string;
  created_at: string | Date;
  request_id?: string | null;
  key_id: string;
  workspace_id: string;
  organization_id: string;
  api_type: string;
  streamed: boolean;
  data_region: string;
  user_agent?: string | null;
  origin: string;
  title?: string | null;
  session_id?: string | null;
  external_user?: string | null;
  metadata?: Record<string, string> | null;
  guardrails?: GuardrailMark[] | null;
  model: string;
  endpoint_id?: string | null;
  provider_name?: string | null;
  upstream_id?: string | null;
  is_byok: boolean;
  status?: number | null;
  error?: { type: string; message: string } | null;
  cancelled: boolean;
  estimated: boolean;
  unconfirmed: boolean;
  finish_reason?: string | null;
  native_finish_reason?: string | null;
  input_tokens?: number | bigint | null;
  cache_read_tokens?: number | bigint | null;
  cache_write_5m_tokens?: number | bigint | null;
  cache_write_1h_tokens?: number | bigint | null;
  output_tokens?: number | bigint | null;
  reasoning_tokens?: number | bigint | null;
  usage_details?: Record<string, number> | null;
  media: Record<string, number>;
  cost_nano: string | number | bigint;
  byok_nano: string | number | bigint;
  upstream_cost_nano?: string | number | bigint | null;
  cache_discount_nano?: string | number | bigint | null;
  latency_ms?: number | null;
  generation_ms?: number | null;
  moderation_ms?: number | null;
  provider_responses: Generation['providerResponses'];
  service_tier?: string | null;
  router?: string | null;
  preset_id?: string | null;
  web_search_engine?: string | null;
  response_cache_source_id?: string | null;
}

const USAGE_DETAILS = [
  'inputAudio',
  'inputImage',
  'outputAudio',
  'outputImage',
  'acceptedPrediction',
  'rejectedPrediction',
  'webSearches',
  'webFetches',
  'searchUnits',
] as const;

/** JSON text of the row. PostgreSQL must accept its content, because one bad row would block its whole batch. */
export function encodeRow(row: Generation): string {
  const text = JSON.stringify(rowColumns(row));
  return text.includes('\\u') ? text.replace(ESCAPE, storable) : text;
}

/** Every escape of a JSON text; the group captures NUL and lone surrogates, which PostgreSQL refuses. */
const ESCAPE = /\\(?:u(0000|d[89a-f][0-9a-f]{2})|.)/g;

function storable(sequence: string, unstorable: string | undefined): string {
  return unstorable === undefined ? sequence : '\ufffd';
}

/** Omits null members, a third of the text; the database reads an absent column as null. */
function rowColumns(row: Generation): RowColumns {
  const usage = row.usage;
  return {
    id: row.id,
    created_at: isoTime(row.createdAt),
    request_id: row.requestId ?? undefined,
    key_id: row.keyId,
    workspace_id: row.workspaceId,
    organization_id: row.organizationId,
    api_type: row.apiType,
    streamed: row.streamed,
    data_region: row.dataRegion,
    user_agent: row.userAgent ?? undefined,
    origin: row.origin,
    title: row.title ?? undefined,
    session_id: row.sessionId ?? undefined,
    external_user: row.externalUser ?? undefined,
    metadata: row.metadata ?? undefined,
    guardrails: row.guardrails && [...row.guardrails],
    model: row.model,
    endpoint_id: row.endpointId ?? undefined,
    provider_name: row.providerName ?? undefined,
    upstream_id: row.upstreamId ?? undefined,
    is_byok: row.isByok,
    status: row.status ?? undefined,
    error: row.error ?? undefined,
    cancelled: row.cancelled,
    estimated: row.estimated,
    unconfirmed: row.unconfirmed,
    finish_reason: row.finishReason ?? undefined,
    native_finish_reason: row.nativeFinishReason ?? undefined,
    input_tokens: usage === null ? undefined : count(usage.input),
    cache_read_tokens: usage === null ? undefined : count(usage.cacheRead),
    cache_write_5m_tokens: usage === null ? undefined : count(usage.cacheWrite5m),
    cache_write_1h_tokens: usage === null ? undefined : count(usage.cacheWrite1h),
    output_tokens: usage === null ? undefined : count(usage.output),
    reasoning_tokens: usage === null ? undefined : count(usage.reasoning),
    usage_details: usage === null ? undefined : usageDetails(usage),
    media: row.media as Record<string, number>,
    cost_nano: money(row.costNano),
    byok_nano: money(row.byokNano),
    upstream_cost_nano: row.upstreamCostNano === null ? undefined : money(row.upstreamCostNano),
    cache_discount_nano: row.cacheDiscountNano === null ? undefined : money(row.cacheDiscountNano),
    latency_ms: row.latencyMs ?? undefined,
    generation_ms: row.generationMs ?? undefined,
    moderation_ms: row.moderationMs ?? undefined,
    provider_responses: row.providerResponses,
    service_tier: row.serviceTier ?? undefined,
    router: row.router ?? undefined,
    preset_id: row.presetId ?? undefined,
    web_search_engine: row.webSearchEngine ?? undefined,
    response_cache_source_id: row.responseCacheSourceId ?? undefined,
  };
}

/** Upstreams may report any number; the column requires a non-negative integer. */
function count(tokens: number): number {
  if (!(tokens > 0)) return 0;
  return tokens < Number.MAX_SAFE_INTEGER ? Math.round(tokens) : Number.MAX_SAFE_INTEGER;
}

const LARGEST_MONEY = 2n ** 53n;

function money(nano: bigint): string {
  if (nano > LARGEST_MONEY) return String(LARGEST_MONEY);
  return nano < -LARGEST_MONEY ? String(-LARGEST_MONEY) : String(nano);
}

function usageDetails(usage: Usage): Record<string, number> | undefined {
  let details: Record<string, number> | undefined;
  for (const name of USAGE_DETAILS) {
    const value = usage[name];
    if (value === undefined) continue;
    details ??= {};
    details[name] = count(value);
  }
  return details;
}

/** Decodes the JSON text of a row, or the columns from the database. */
export function decodeRow(columns: RowColumns): Generation {
  return {
    id: columns.id,
    createdAt: new Date(columns.created_at).getTime(),
    requestId: columns.request_id ?? null,
    keyId: columns.key_id,
    workspaceId: columns.workspace_id,
    organizationId: columns.organization_id,
    apiType: columns.api_type as Generation['apiType'],
    streamed: columns.streamed,
    dataRegion: columns.data_region as Generation['dataRegion'],
    userAgent: columns.user_agent ?? null,
    origin: columns.origin,
    title: columns.title ?? null,
    sessionId: columns.session_id ?? null,
    externalUser: columns.external_user ?? null,
    metadata: columns.metadata ?? null,
    ...(columns.guardrails && { guardrails: columns.guardrails }),
    model: columns.model,
    endpointId: columns.endpoint_id ?? null,
    providerName: columns.provider_name ?? null,
    upstreamId: columns.upstream_id ?? null,
    isByok: columns.is_byok,
    status: columns.status ?? null,
    error: columns.error ?? null,
    cancelled: columns.cancelled,
    estimated: columns.estimated,
    unconfirmed: columns.unconfirmed,
    finishReason: columns.finish_reason ?? null,
    nativeFinishReason: columns.native_finish_reason ?? null,
    usage: decodeUsage(columns),
    media: columns.media,
    costNano: BigInt(columns.cost_nano),
    byokNano: BigInt(columns.byok_nano),
    upstreamCostNano: columns.upstream_cost_nano == null ? null : BigInt(columns.upstream_cost_nano),
    cacheDiscountNano: columns.cache_discount_nano == null ? null : BigInt(columns.cache_discount_nano),
    latencyMs: columns.latency_ms ?? null,
    generationMs: columns.generation_ms ?? null,
    moderationMs: columns.moderation_ms ?? null,
    providerResponses: columns.provider_responses,
    serviceTier: columns.service_tier ?? null,
    router: columns.router ?? null,
    presetId: columns.preset_id ?? null,
    webSearchEngine: columns.web_search_engine ?? null,
    responseCacheSourceId: columns.response_cache_source_id ?? null,
  };
}

function decodeUsage(columns: RowColumns): Usage | null {
  if (columns.input_tokens == null) return null;
  return {
    input: Number(columns.input_tokens),
    cacheRead: Number(columns.cache_read_tokens),
    cacheWrite5m: Number(columns.cache_write_5m_tokens),
    cacheWrite1h: Number(columns.cache_write_1h_tokens),
    output: Number(columns.output_tokens),
    reasoning: Number(columns.reasoning_tokens),
    ...columns.usage_details,
  };
}
