/**
 * `/datasets`: public clients expect rankings of a whole service there; here they are those of this installation. `/benchmarks`
 * and `/classifications/task` need data that no installation has, and say so.
 */
import type { Caller } from '../../access/index.ts';
import { GatewayError, invalidField } from '../../base/errors.ts';
import { SerialQueue } from '../../base/serial-queue.ts';
import { ANY_KEY } from '../../http/access-rule.ts';
import { ok } from '../../http/contract.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import type { DimensionName, MetricName } from '../names.ts';
import { slugsOf } from '../operations.ts';
import type { AnalyticsParts } from '../parts.ts';
import type { AnalyticsQuery } from '../query.ts';
import { type AnalyticsRow, selectRows } from '../store.ts';
import { inTime } from '../time-limit.ts';
import { type AppTotal, appRow, growing, medianCosts, rankedByDay, slugOf } from './rankings.ts';
import * as schema from './schema.ts';
import { DAY_MS, dateOf, metaOf, type Window, windowOf } from './window.ts';

const TAG = 'Datasets';
const MOST_ROWS = 100_000;
/** How many earlier periods a trend is compared with, by their average. */
const EARLIER_PERIODS = 3;
const SESSION_DAYS = 7;
const UNRECORDED = ['modality', 'context_bucket', 'category', 'subcategory', 'language_type'];

/** Reads `parts` only while handling a request. */
export function datasetOperations(parts: AnalyticsParts): Operation<Caller>[] {
  const line = new SerialQueue();
  const rows = (exchange: Exchange<Caller>, wanted: Wanted) => line.run(() => readRows(exchange, wanted, parts));
  return [
    {
      id: 'getRankingsDaily',
      method: 'GET',
      path: '/datasets/rankings-daily',
      summary: 'Tokens by day and model: the first 50 models of each day, then all others together',
      tag: TAG,
      access: ANY_KEY,
      query: schema.DailyQuerySchema,
      errors: [408],
      replies: ok('Of the workspace (inference keys) or of the organization (management keys)', schema.DailyReply),
      async handle(exchange) {
        const query = exchange.query as schema.DailyQuery;
        refuseUnrecorded(query);
        const now = parts.clock.now();
        const window = windowOf(query.start_date, query.end_date, now);
        const found = await rows(exchange, {
          ...{ window, dimensions: ['model'], metrics: ['tokens_total'] },
          granularity: query.period ?? 'day',
        });
        const days = found.map(({ date, d0, m0 }) => ({
          date: dateOf(date!.getTime()),
          model: String(d0),
          tokens: BigInt(m0 as bigint),
        }));
        const sorted = days.toSorted((one, other) => (one.date < other.date ? -1 : 1));
        exchange.reply(200, { data: rankedByDay(sorted), meta: metaOf(window, now) });
      },
    },
    {
      id: 'getAppRankings',
      method: 'GET',
      path: '/datasets/app-rankings',
      summary: 'Apps by tokens or by growth; an app is the `X-Title` of requests',
      tag: TAG,
      access: ANY_KEY,
      query: schema.AppsQuerySchema,
      errors: [408],
      replies: ok('Of the workspace (inference keys) or of the organization (management keys)', schema.AppsReply),
      async handle(exchange) {
        const query = exchange.query as schema.AppsQuery;
        refuseUnrecorded(query);
        const now = parts.clock.now();
        const window = windowOf(query.start_date, query.end_date, now);
        const totals = async (of: Window) =>
          (await rows(exchange, { window: of, dimensions: ['app_title'], metrics: ['tokens_total', 'request_count'] }))
            .filter(({ d0 }) => d0 !== null)
            .map(
              ({ d0, m0, m1 }): AppTotal => ({
                name: String(d0),
                tokens: BigInt(m0 as bigint),
                requests: Number(m1),
              }),
            );
        const span = EARLIER_PERIODS * (window.until - window.from);
        const apps = await totals(window);
        const isTrend = query.sort === 'trending';
        const ranked = isTrend
          ? growing(apps, await totals({ from: window.from - span, until: window.from }), EARLIER_PERIODS)
          : apps.toSorted((one, other) => (one.tokens > other.tokens ? -1 : 1));
        const { offset = 0, limit = 50 } = query;
        const data = ranked.map((app, at) => appRow(app, at + 1)).slice(offset, offset + limit);
        exchange.reply(200, { data, meta: metaOf(window, now) });
      },
    },
    sessionCost(parts, rows),
    unavailable('getBenchmarks', '/benchmarks', 'the gateway measures no scores of models'),
    unavailable(
      'getTaskClassifications',
      '/classifications/task',
      'the gateway does not classify what requests are about',
    ),
  ];
}

function sessionCost(
  parts: AnalyticsParts,
  rows: (exchange: Exchange<Caller>, wanted: Wanted) => Promise<AnalyticsRow[]>,
): Operation<Caller> {
  return {
    id: 'getSessionCost',
    method: 'GET',
    path: '/datasets/session-cost',
    summary: `Median cost of a session by app, model and turns, over the last ${SESSION_DAYS} completed days`,
    tag: TAG,
    access: ANY_KEY,
    query: schema.SessionsQuerySchema,
    errors: [408],
    replies: ok('Of the workspace (inference keys) or of the organization (management keys)', schema.SessionsReply),
    async handle(exchange) {
      const query = exchange.query as schema.SessionsQuery;
      const now = parts.clock.now();
      const until = Math.floor(now / DAY_MS) * DAY_MS;
      const found = await rows(exchange, {
        window: { from: until - SESSION_DAYS * DAY_MS, until },
        dimensions: ['session', 'app_title', 'model'],
        metrics: ['total_usage', 'request_count'],
      });
      const sessions = found
        .filter(({ d0, d1 }) => d0 !== null && d1 !== null)
        .map(({ d1, d2, m0, m1 }) => ({
          app: String(d1),
          model: String(d2),
          nano: BigInt(m0 as bigint),
          turns: Number(m1),
        }));
      const { offset = 0, limit = 100 } = query;
      const data = medianCosts(sessions)
        .map(({ app, model, turnRange, nano }) => ({
          app_name: app,
          app_slug: slugOf(app),
          model_permaslug: model,
          turn_range: turnRange,
          median_session_cost_usd: nano / 1e9,
        }))
        .filter((cell) => query.app_slug === undefined || cell.app_slug === query.app_slug)
        .filter((cell) => query.model === undefined || cell.model_permaslug === query.model)
        .filter((cell) => query.turn_range === undefined || cell.turn_range === query.turn_range)
        .slice(offset, offset + limit);
      exchange.reply(200, {
        data,
        meta: {
          ...{ as_of: new Date(now).toISOString(), version: 'v1' as const },
          ...{ window_days: SESSION_DAYS, window_end_date: dateOf(until - DAY_MS) },
        },
      });
    },
  };
}

function unavailable(id: string, path: string, reason: string): Operation<Caller> {
  return {
    id,
    method: 'GET',
    path,
    summary: `Always 404: ${reason}`,
    tag: TAG,
    access: ANY_KEY,
    anyQuery: true,
    errors: [404],
    replies: {},
    handle() {
      throw new GatewayError('not_found', `${path} does not exist here: ${reason}`);
    },
  };
}

function refuseUnrecorded(query: Readonly<Record<string, unknown>>): void {
  for (const name of UNRECORDED) {
    if (query[name] !== undefined) throw invalidField(name, 'is not supported: generations do not record it');
  }
}

interface Wanted {
  window: Window;
  granularity?: AnalyticsQuery['granularity'];
  dimensions: readonly DimensionName[];
  metrics: readonly MetricName[];
}

/** An inference key sees its workspace. */
async function readRows(
  { caller }: Exchange<Caller>,
  { window, granularity, dimensions, metrics }: Wanted,
  parts: AnalyticsParts,
): Promise<AnalyticsRow[]> {
  const own = { field: 'workspace', operator: 'eq', values: [caller.workspaceId], includeUnset: false } as const;
  const query: AnalyticsQuery = {
    ...{ from: new Date(window.from), until: new Date(window.until), granularity, dimensions, metrics },
    filters: caller.kind === 'inference' ? [own] : [],
    orderBy: { field: metrics[0]!, descending: true },
    ...{ limit: MOST_ROWS, groupLimit: undefined },
  };
  await parts.entered();
  const slugs = slugsOf(parts.catalog());
  return inTime(parts, (tx, timeoutMs) => selectRows(tx, caller.organizationId, query, slugs, timeoutMs));
}
