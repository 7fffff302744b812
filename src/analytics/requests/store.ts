/**
 * The SQL of the list of generations. Ids sort by time and are the key of each month's table, so a page is read from the
 * end of an index, however many rows there are. Times without requests of the model, provider and so on are skipped.
 */
import { failedSql } from '../../spend/index.ts';
import type { Queryable } from '../../storage/database.ts';
import { type Outcome, timesWith } from './times.sql.ts';

export interface GenerationFilter {
  organizationId: string;
  from: Date | undefined;
  /** Exclusive. */
  until: Date | undefined;
  id: string | undefined;
  /** Any of these names. */
  models: readonly string[] | undefined;
  provider: string | undefined;
  keyIds: readonly string[] | undefined;
  workspaceId: string | undefined;
  apiType: string | undefined;
  errorType: string | undefined;
  sessionId: string | undefined;
  externalUser: string | undefined;
  outcome: Outcome | undefined;
  /** Only ids before this one. */
  before: string | undefined;
  limit: number;
}

export interface GenerationRow {
  id: string;
  createdAt: Date;
  model: string;
  providerName: string | null;
  apiType: string;
  streamed: boolean;
  status: number | null;
  error: { type: string; message: string } | null;
  cancelled: boolean;
  estimated: boolean;
  finishReason: string | null;
  keyHash: string | null;
  keyName: string | null;
  keyLabel: string | null;
  workspaceId: string;
  sessionId: string | null;
  externalUser: string | null;
  isByok: boolean;
  attempts: number;
  marks: number;
  promptTokens: bigint | null;
  completionTokens: bigint | null;
  costNano: bigint;
  latencyMs: number | null;
  generationMs: number | null;
}

const FAILED = failedSql('g.');
/** All but `succeeded` are the conditions of indexes. */
const OUTCOMES: Readonly<Record<Outcome, string>> = {
  succeeded: `not ${FAILED} and not g.cancelled`,
  failed: FAILED,
  cancelled: 'g.cancelled',
  guarded: `g.guardrails <> '[]'::jsonb`,
};

/** How far the time in an id may be from that of its row. */
const SLACK_MS = 3_600_000;
const TIME_DIGITS = 12;

/** The ids of requests, and of those of batches. Each kind sorts by its digits; `end` sorts after all of them. */
const KINDS = [
  { prefix: 'gen-', end: 'gen-batch-' },
  { prefix: 'gen-batch-', end: 'gen-batch.' },
] as const;
/** SQL: the digits of an id, by which both kinds sort together. */
const DIGITS = 'right(g.id, 32)';

/** The first digits of ids that are made at a time. */
function digitsAt(ms: number): string {
  return Math.max(0, ms).toString(16).padStart(TIME_DIGITS, '0');
}

function digitsOf(id: string): string {
  return id.replace(/^gen-(?:batch-)?/, '');
}

/** When an id was made, in ms; undefined for what is no id. */
function timeOf(id: string | undefined): number | undefined {
  const digits = /^[0-9a-f]{12}/.exec(digitsOf(id ?? ''))?.[0];
  return digits === undefined ? undefined : Number.parseInt(digits, 16);
}

/**
 * Newest first. Fails with SQLSTATE 57014 once no time remains. Call it at the beginning of a transaction.
 * @param remaining ms that the statements may still take
 */
export async function listGenerations(
  tx: Queryable,
  filter: GenerationFilter,
  remaining: () => number,
): Promise<GenerationRow[]> {
  // Totals and rows are read from one snapshot.
  await tx.query('set transaction isolation level repeatable read, read only');
  await limitTime(tx, remaining);
  if (!skipsTimes(filter)) return pageOf(tx, filter, {});
  const { from, until, before, limit } = filter;
  const latest = timeOf(before);
  const runs = timesWith(tx, {
    ...filter,
    from: from?.getTime() ?? 0,
    until: Math.min(until?.getTime() ?? LAST_MS, latest === undefined ? LAST_MS : latest + SLACK_MS),
  });
  const rows: GenerationRow[] = [];
  let below: string | undefined;
  for await (const run of runs) {
    await limitTime(tx, remaining);
    const least = digitsAt(run.from - SLACK_MS);
    const most = digitsAt(run.until + SLACK_MS);
    // Runs overlap by the slack.
    const digits = { least, below: below === undefined || most < below ? most : below };
    rows.push(...(await pageOf(tx, { ...filter, limit: limit - rows.length }, digits)));
    if (rows.length === limit) break;
    below = least;
  }
  return rows;
}

const LAST_MS = 8.64e15;

/** True if only the totals can tell where the rows are: no index finds them without many others. */
function skipsTimes(filter: GenerationFilter): boolean {
  const { models, workspaceId, provider, apiType, errorType, outcome } = filter;
  const indexed = [filter.id, filter.sessionId, filter.externalUser].some((value) => value !== undefined);
  const summed = [models, workspaceId, provider, apiType, errorType].some((value) => value !== undefined);
  return !indexed && (summed || outcome === 'succeeded');
}

async function limitTime(tx: Queryable, remaining: () => number): Promise<void> {
  await tx.query(`select set_config('statement_timeout', $1, true)`, [`${Math.max(1, Math.ceil(remaining()))}ms`]);
}

/** @param digits a range of the digits of ids; `below` is exclusive */
async function pageOf(
  tx: Queryable,
  filter: GenerationFilter,
  digits: { least?: string; below?: string },
): Promise<GenerationRow[]> {
  const parameters: unknown[] = [filter.organizationId];
  const conditions = ['g.organization_id = $1'];
  const where = (value: unknown, condition: (parameter: string) => string) => {
    if (value !== undefined) conditions.push(condition(`$${parameters.push(value)}`));
  };
  where(filter.from, (value) => `g.created_at >= ${value}`);
  where(filter.until, (value) => `g.created_at < ${value}`);
  where(filter.id, (value) => `g.id = ${value}`);
  where(filter.models, (value) => `g.model = any(${value})`);
  where(filter.provider, (value) => `g.provider_name = ${value}`);
  // With one key the index has the order of the page.
  const { keyIds } = filter;
  if (keyIds?.length === 1) where(keyIds[0], (value) => `g.key_id = ${value}`);
  else where(keyIds, (value) => `g.key_id = any(${value})`);
  where(filter.workspaceId, (value) => `g.workspace_id = ${value}`);
  where(filter.apiType, (value) => `g.api_type = ${value}`);
  where(filter.errorType, (value) => `g.error ->> 'type' = ${value}`);
  where(filter.sessionId, (value) => `g.session_id = ${value}`);
  where(filter.externalUser, (value) => `g.external_user = ${value}`);
  if (filter.outcome !== undefined) conditions.push(OUTCOMES[filter.outcome]);
  // Lets the index of failed requests be used.
  if (filter.errorType !== undefined) conditions.push(FAILED);
  const limit = `$${parameters.push(filter.limit)}`;
  // Each kind of ids is read from the end of its range of the index.
  const kinds = rangesOf(filter, digits).map(([least, below]) => {
    const range = `g.id >= $${parameters.push(least)} and g.id < $${parameters.push(below)}`;
    return `(select * from generations g where ${conditions.join(' and ')} and ${range} order by g.id desc limit ${limit})`;
  });
  return tx.query<GenerationRow>(
    `with page as (
       select * from (${kinds.join(' union all ')}) g order by ${DIGITS} desc limit ${limit}
     )
     select g.id, g.created_at as "createdAt", g.model, g.provider_name as "providerName", g.api_type as "apiType",
            g.streamed, g.status, g.error, g.cancelled, g.estimated, g.finish_reason as "finishReason",
            k.hash as "keyHash", k.name as "keyName", k.label as "keyLabel", g.workspace_id as "workspaceId",
            g.session_id as "sessionId", g.external_user as "externalUser", g.is_byok as "isByok",
            jsonb_array_length(g.provider_responses) as attempts,
            jsonb_array_length(coalesce(g.guardrails, '[]'::jsonb)) as marks,
            g.input_tokens + g.cache_read_tokens + g.cache_write_5m_tokens + g.cache_write_1h_tokens as "promptTokens",
            g.output_tokens as "completionTokens", g.cost_nano as "costNano", g.latency_ms as "latencyMs",
            g.generation_ms as "generationMs"
       from page g left join api_keys k on k.id::text = g.key_id
      order by ${DIGITS} desc`,
    parameters,
  );
}

/** For each kind of ids, the range that a page may be in; its end is exclusive. */
function rangesOf(
  { from, until, before }: GenerationFilter,
  digits: { least?: string; below?: string },
): readonly (readonly [string, string])[] {
  // The range of times, by ids, which are indexed.
  const least = [digits.least, from && digitsAt(from.getTime() - SLACK_MS)].filter((each) => each !== undefined);
  const below = [digits.below, until && digitsAt(until.getTime() + SLACK_MS), before && digitsOf(before)];
  const first = least.toSorted().at(-1) ?? '';
  const last = below.filter((each) => each !== undefined).toSorted()[0];
  return KINDS.map(({ prefix, end }) => {
    const ends = last === undefined ? [end] : [end, prefix + last];
    return [prefix + first, ends.toSorted()[0]!];
  });
}
