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

/** The beginning of ids that are made at a time. */
function idAt(ms: number): string {
  return `gen-${Math.max(0, ms).toString(16).padStart(TIME_DIGITS, '0')}`;
}

/** When an id was made, in ms; undefined for what is no id. */
function timeOf(id: string | undefined): number | undefined {
  const digits = /^gen-([0-9a-f]{12})/.exec(id ?? '')?.[1];
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
    const least = idAt(run.from - SLACK_MS);
    const most = idAt(run.until + SLACK_MS);
    // Runs overlap by the slack.
    const ids = { least, below: below === undefined || most < below ? most : below };
    rows.push(...(await pageOf(tx, { ...filter, limit: limit - rows.length }, ids)));
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

/** @param ids a range of ids; `below` is exclusive */
async function pageOf(
  tx: Queryable,
  filter: GenerationFilter,
  ids: { least?: string; below?: string },
): Promise<GenerationRow[]> {
  const parameters: unknown[] = [filter.organizationId];
  const conditions = ['g.organization_id = $1'];
  const where = (value: unknown, condition: (parameter: string) => string) => {
    if (value !== undefined) conditions.push(condition(`$${parameters.push(value)}`));
  };
  where(filter.from, (value) => `g.created_at >= ${value}`);
  where(filter.until, (value) => `g.created_at < ${value}`);
  // The same range by ids, which are indexed.
  where(filter.from && idAt(filter.from.getTime() - SLACK_MS), (value) => `g.id >= ${value}`);
  where(filter.until && idAt(filter.until.getTime() + SLACK_MS), (value) => `g.id < ${value}`);
  where(filter.before, (value) => `g.id < ${value}`);
  where(ids.least, (value) => `g.id >= ${value}`);
  where(ids.below, (value) => `g.id < ${value}`);
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
  return tx.query<GenerationRow>(
    `with page as (
       select * from generations g where ${conditions.join(' and ')}
       order by g.id desc limit $${parameters.push(filter.limit)}
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
      order by g.id desc`,
    parameters,
  );
}
