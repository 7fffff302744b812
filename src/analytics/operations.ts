/** `GET /analytics/meta` and `POST /analytics/query`. */
import { type Caller, namedKeys } from '../access/index.ts';
import { usdFromNano } from '../base/money.ts';
import { SerialQueue } from '../base/serial-queue.ts';
import type { Catalog } from '../catalog/index.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import { METRICS, meta } from './names.ts';
import type { AnalyticsParts } from './parts.ts';
import { type AnalyticsQuery, type Filter, readQuery } from './query.ts';
import { listGenerationsOperation } from './requests/operation.ts';
import * as schema from './schema.ts';
import { type AnalyticsRow, selectRows } from './store.ts';
import { inTime } from './time-limit.ts';

const TAG = 'Analytics';

/** Reads `parts` only while handling a request. */
export function analyticsOperations(parts: AnalyticsParts): Operation<Caller>[] {
  return [getMeta(), queryAnalytics(parts, new SerialQueue()), listGenerationsOperation(parts)];
}

function getMeta(): Operation<Caller> {
  return {
    id: 'getAnalyticsMeta',
    method: 'GET',
    path: '/analytics/meta',
    summary: 'List the names that a query may use',
    tag: TAG,
    access: MANAGEMENT,
    replies: ok('Dimensions, granularities, metrics and operators', schema.MetaEnvelope),
    handle(exchange) {
      exchange.reply(200, { data: meta() });
    },
  };
}

function queryAnalytics(parts: AnalyticsParts, line: SerialQueue): Operation<Caller> {
  return {
    id: 'queryAnalytics',
    method: 'POST',
    path: '/analytics/query',
    summary: 'Query totals and rates of requests by time and dimensions; buckets are in UTC, empty ones are omitted',
    tag: TAG,
    access: MANAGEMENT,
    body: { schema: schema.QuerySchema },
    errors: [408],
    replies: {
      ...ok('Rows', schema.AnswerEnvelope),
      408: { description: 'The query took too long and was cancelled' },
    },
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const parsed = readQuery(exchange.body as schema.QueryBody, parts.clock.now());
      const slugs = slugsOf(parts.catalog());
      const { filters, warnings } = await resolved(parts, organizationId, parsed.filters);
      const query = { ...parsed, filters };
      const { rows, elapsedMs } = await line.run(async () => {
        await parts.entered();
        const startedAt = parts.clock.monotonic();
        const rows = await inTime(parts, (tx, timeoutMs) => selectRows(tx, organizationId, query, slugs, timeoutMs));
        return { rows, elapsedMs: parts.clock.monotonic() - startedAt };
      });
      exchange.reply(200, {
        data: {
          data: rows.map((row) => rowReply(query, row)),
          metadata: {
            query_time_ms: elapsedMs,
            row_count: rows.length,
            truncated: rows.length > 0 && rows.length < Number(rows[0]!.total),
          },
          ...(warnings.length > 0 && { warnings }),
        },
      });
    },
  };
}

/** Permaslugs by model id, for models where they differ. */
export function slugsOf({ models }: Pick<Catalog, 'models'>): Map<string, string> {
  const slugs = new Map<string, string>();
  for (const { id, facts } of models) {
    if (facts !== undefined && facts.canonical_slug !== id) slugs.set(id, facts.canonical_slug);
  }
  return slugs;
}

/** Maps filter values to row values: keys to their ids, models to their permaslugs, workspaces to lower case. */
async function resolved(
  { database, catalog }: AnalyticsParts,
  organizationId: string,
  filters: readonly Filter[],
): Promise<{ filters: Filter[]; warnings: string[] }> {
  const warnings: string[] = [];
  const found: Filter[] = [];
  for (const filter of filters) {
    const values = filter.values.map(String);
    if (filter.field === 'api_key_id') {
      const keys = await namedKeys(database, organizationId, values);
      for (const value of new Set(values)) {
        if (!keys.has(value)) warnings.push(`api_key_id: unknown key ${value.slice(0, 100)}`);
      }
      const ids = values.flatMap((value) => keys.get(value) ?? []);
      // Several keys may have the same number.
      const operator = filter.operator === 'eq' || filter.operator === 'in' ? 'in' : 'not_in';
      found.push({ ...filter, operator, values: ids });
    } else if (filter.field === 'workspace') {
      found.push({ ...filter, values: values.map((value) => value.toLowerCase()) });
    } else if (filter.field === 'model') {
      const models = catalog();
      found.push({ ...filter, values: values.map((value) => permaslug(models, value)) });
    } else {
      found.push(filter);
    }
  }
  return { filters: found, warnings };
}

function permaslug(catalog: Pick<Catalog, 'find'>, name: string): string {
  const model = catalog.find(name);
  return model?.facts?.canonical_slug ?? model?.id ?? name;
}

function rowReply(query: AnalyticsQuery, row: AnalyticsRow): Record<string, unknown> {
  const reply: Record<string, unknown> = {};
  if (row.date !== undefined) reply['date'] = row.date.toISOString();
  for (const [at, name] of query.dimensions.entries()) reply[name] = row[`d${at}`] ?? null;
  for (const [at, name] of query.metrics.entries()) {
    const value = row[`m${at}`];
    if (METRICS[name].format === 'currency') reply[name] = usdFromNano(BigInt(value as bigint));
    else reply[name] = value === null ? null : Number(value);
  }
  return reply;
}
