/**
 * The SQL of the list of generations. Ids sort by time and are the key of each month's table, so a page is read from the
 * end of an index, however many rows there are.
 */
import type { Queryable } from '../../storage/database.ts';

type Outcome = 'succeeded' | 'failed' | 'cancelled' | 'guarded';

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

const FAILED = '(g.error is not null or g.status >= 400)';
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

/** Newest first. Fails with SQLSTATE 57014 after `timeoutMs`. Call it in a transaction. */
export async function listGenerations(
  tx: Queryable,
  filter: GenerationFilter,
  timeoutMs: number,
): Promise<GenerationRow[]> {
  await tx.query('set transaction read only');
  await tx.query(`select set_config('statement_timeout', $1, true)`, [`${Math.ceil(timeoutMs)}ms`]);
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
