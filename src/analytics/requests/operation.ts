/** `GET /generations`: single requests, newest first, by filters. */
import { type Caller, namedKeys } from '../../access/index.ts';
import { invalidField } from '../../base/errors.ts';
import { usdFromNano } from '../../base/money.ts';
import { readTimestamp } from '../../base/timestamp.ts';
import { MANAGEMENT } from '../../http/access-rule.ts';
import { ok } from '../../http/contract.ts';
import type { Operation } from '../../http/operation.ts';
import type { AnalyticsParts } from '../parts.ts';
import { inTime } from '../time-limit.ts';
import {
  type GenerationListQuery,
  GenerationListQuerySchema,
  GenerationListSchema,
  type GenerationSummary,
} from './schema.ts';
import { type GenerationFilter, type GenerationRow, listGenerations } from './store.ts';

const DEFAULT_PAGE = 50;

export function listGenerationsOperation(parts: AnalyticsParts): Operation<Caller> {
  return {
    id: 'listGenerations',
    method: 'GET',
    path: '/generations',
    summary: 'List generations of the organization, newest first',
    tag: 'Generations',
    access: MANAGEMENT,
    query: GenerationListQuerySchema,
    errors: [408],
    replies: {
      ...ok('One page', GenerationListSchema),
      408: { description: 'The query took too long and was cancelled' },
    },
    async handle(exchange) {
      const query = exchange.query as GenerationListQuery;
      const limit = query.limit ?? DEFAULT_PAGE;
      const filter = await filterOf(parts, exchange.caller.organizationId, query);
      await parts.entered();
      const startedAt = parts.clock.monotonic();
      const rows = await inTime(parts, (tx, timeoutMs) =>
        listGenerations(tx, { ...filter, limit: limit + 1 }, () => startedAt + timeoutMs - parts.clock.monotonic()),
      );
      const page = rows.slice(0, limit);
      exchange.reply(200, {
        data: page.map(summaryOf),
        next_cursor: rows.length > limit ? (page.at(-1)?.id ?? null) : null,
      });
    },
  };
}

async function filterOf(
  { database, catalog }: AnalyticsParts,
  organizationId: string,
  query: GenerationListQuery,
): Promise<Omit<GenerationFilter, 'limit'>> {
  const from = query.start === undefined ? undefined : readTimestamp('start', query.start);
  const until = query.end === undefined ? undefined : readTimestamp('end', query.end);
  if (from !== undefined && until !== undefined && from >= until) throw invalidField('end', 'must be later than start');
  const { model, api_key_id: key } = query;
  const known = model === undefined ? undefined : catalog().find(model)?.id;
  return {
    organizationId,
    from,
    until,
    id: query.id?.replace(/^resp_/, 'gen-'),
    models: model === undefined ? undefined : [model, ...(known === undefined ? [] : [known])],
    provider: query.provider,
    keyIds: key === undefined ? undefined : ((await namedKeys(database, organizationId, [key])).get(key) ?? []),
    workspaceId: query.workspace_id?.toLowerCase(),
    apiType: query.api_type,
    errorType: query.error_type,
    sessionId: query.session_id,
    externalUser: query.external_user,
    outcome: query.outcome,
    before: query.cursor,
  };
}

function summaryOf(row: GenerationRow): GenerationSummary {
  const { keyHash, keyName, keyLabel } = row;
  return {
    id: row.id,
    created_at: row.createdAt.toISOString(),
    model: row.model,
    provider_name: row.providerName,
    api_type: row.apiType,
    streamed: row.streamed,
    status: row.status,
    error: row.error && { type: row.error.type, message: row.error.message },
    cancelled: row.cancelled,
    estimated: row.estimated,
    finish_reason: row.finishReason,
    api_key: keyHash === null ? null : { hash: keyHash, name: keyName ?? '', label: keyLabel ?? '' },
    workspace_id: row.workspaceId,
    session_id: row.sessionId,
    external_user: row.externalUser,
    is_byok: row.isByok,
    attempts: row.attempts,
    guardrail_marks: row.marks,
    tokens_prompt: row.promptTokens === null ? null : Number(row.promptTokens),
    tokens_completion: row.completionTokens === null ? null : Number(row.completionTokens),
    total_cost: usdFromNano(row.costNano),
    latency: row.latencyMs,
    generation_time: row.generationMs,
  };
}
