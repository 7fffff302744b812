/** `GET /activity`: usage and cost of the last 30 completed days (UTC). */
import { type Caller, hadWorkspace, pastKeyIds } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { usdFromNano } from '../base/money.ts';
import { readDay } from '../base/timestamp.ts';
import type { Catalog } from '../catalog/index.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import type { ActivitySum, Spend } from '../spend/index.ts';
import type { Database } from '../storage/database.ts';
import { type ActivityItem, type ActivityParameters, ActivityParametersSchema, ActivityReplySchema } from './schema.ts';

export interface ActivityParts {
  spend: Pick<Spend, 'activity'>;
  database: Database;
  clock: Clock;
  catalog(): Pick<Catalog, 'find'>;
}

const DAY_MS = 86_400_000;
const DAYS = 30;

export function activityOperation(parts: ActivityParts): Operation<Caller> {
  return {
    id: 'getActivity',
    method: 'GET',
    path: '/activity',
    summary: 'Requests, tokens and cost of the last 30 completed days (UTC) by day, model and endpoint',
    tag: 'Analytics',
    access: MANAGEMENT,
    query: ActivityParametersSchema,
    errors: [404],
    replies: ok('One row per day, model and endpoint', ActivityReplySchema),
    async handle(exchange) {
      const query = exchange.query as ActivityParameters;
      const { organizationId } = exchange.caller;
      const keyIds = await keysOf(query, organizationId, parts.database);
      const sums = await parts.spend.activity({
        organizationId,
        ...span(query.date, parts.clock.now()),
        byWorkspace: query.group_by === 'workspace',
        ...(keyIds && { keyIds }),
        ...(query.workspace_id !== undefined && { workspaceId: query.workspace_id }),
      });
      if (sums.length === 0 && query.workspace_id !== undefined) {
        const known = await hadWorkspace(parts.database, organizationId, query.workspace_id);
        if (!known) throw new GatewayError('not_found', 'no such workspace', { path: 'workspace_id' });
      }
      const catalog = parts.catalog();
      exchange.reply(200, { data: sums.map((sum) => itemOf(sum, catalog)) });
    },
  };
}

/** The wall times of one day, or of the whole period. */
function span(date: string | undefined, nowMs: number): { from: number; until: number } {
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS;
  const from = today - DAYS * DAY_MS;
  if (date === undefined) return { from, until: today };
  const day = readDay('date', date);
  if (day < from || day >= today) throw invalidField('date', `must be one of the last ${DAYS} completed days (UTC)`);
  return { from: day, until: day + DAY_MS };
}

/** Undefined for rows of all keys. */
async function keysOf(
  { api_key_hash: hash, user_id: creatorUserId }: ActivityParameters,
  organizationId: string,
  database: Database,
): Promise<string[] | undefined> {
  if (hash === undefined && creatorUserId === undefined) return undefined;
  const ids = await pastKeyIds(database, organizationId, { hash, creatorUserId });
  if (ids.length === 0 && hash !== undefined && (await pastKeyIds(database, organizationId, { hash })).length === 0) {
    throw new GatewayError('not_found', 'no such key', { path: 'api_key_hash' });
  }
  return ids;
}

function itemOf(sum: ActivitySum, catalog: Pick<Catalog, 'find'>): ActivityItem {
  return {
    date: sum.date,
    model: sum.model,
    model_permaslug: catalog.find(sum.model)?.facts?.canonical_slug ?? sum.model,
    endpoint_id: sum.endpointId,
    provider_name: sum.providerName,
    ...(sum.workspaceId !== undefined && { workspace_id: sum.workspaceId }),
    usage: usdFromNano(sum.costNano),
    byok_usage_inference: usdFromNano(sum.byokNano),
    requests: Number(sum.requests),
    prompt_tokens: Number(sum.promptTokens),
    completion_tokens: Number(sum.completionTokens),
    reasoning_tokens: Number(sum.reasoningTokens),
  };
}
