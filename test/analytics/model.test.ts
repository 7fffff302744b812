/** Generated questions to generated rows: POST /analytics/query answers what a reader of the rows in memory says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DIMENSIONS, METRICS as METRIC_NAMES } from '../../src/analytics/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import type { Generation } from '../../src/spend/index.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { countTotals, enterRows } from '../../src/testing/database/ledger-rows.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { samples } from '../../src/testing/laws/samples.ts';
import { sampleAccepted, sampleGeneration } from '../../src/testing/laws/spend-samples.ts';
import { controlOf } from '../workspaces/control.ts';
import { type Asked, expectedAnswer, type KnownKey, METRICS, type Row } from './reader.ts';

const START = Date.UTC(2026, 1, 26);
const HOUR_MS = 3_600_000;

const maybe = <T>(values: readonly T[]) => fc.constantFrom(...values, null);

function generation(keyIds: readonly string[], workspaces: readonly string[]): fc.Arbitrary<Generation> {
  return fc
    .record({
      ms: fc.nat(24 * 9 * HOUR_MS),
      key: fc.nat(keyIds.length - 1),
      model: fc.constantFrom('a/one', 'a/Two', 'é/three', 'z'),
      endpoint: maybe(['one', 'two']),
      text: maybe(['x', 'Y', 'ü', "it's; -- %_"]),
      status: maybe([200, 400, 500]),
      error: fc.constantFrom('server', null, null),
      flags: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
      tokens: fc.option(fc.tuple(fc.nat(999), fc.nat(99), fc.nat(99), fc.nat(999), fc.nat(99)), { nil: null }),
      money: fc.tuple(fc.bigInt(0n, 10n ** 12n), fc.bigInt(0n, 999n), maybe([5n, 7n]), maybe([-3n, 8n])),
      times: fc.tuple(maybe([1, 2.5, 100, 1000]), maybe([0, 10, 333.25])),
    })
    .map(({ ms, key, model, endpoint, text, status, error, flags, tokens, money, times }) => {
      const accepted = sampleAccepted('', {
        createdAt: START + ms,
        keyId: keyIds[key]!,
        workspaceId: workspaces[key % workspaces.length]!,
        streamed: flags[0],
        origin: text ?? '',
        title: text,
        externalUser: text,
        sessionId: endpoint,
      });
      const [input, cacheRead, cacheWrite5m, output, reasoning] = tokens ?? [0, 0, 0, 0, 0];
      return sampleGeneration(accepted, {
        model,
        endpointId: endpoint,
        providerName: endpoint && `Provider ${endpoint}`,
        status,
        error: error && { type: error, message: 'm' },
        cancelled: flags[1],
        isByok: flags[2],
        usage: tokens && { input, cacheRead, cacheWrite5m, cacheWrite1h: 1, output, reasoning },
        costNano: money[0],
        byokNano: money[1],
        upstreamCostNano: money[2],
        cacheDiscountNano: money[3],
        latencyMs: times[0],
        generationMs: times[1],
        finishReason: text,
        serviceTier: endpoint,
        responseCacheSourceId: flags[1] ? 'gen-source' : null,
      });
    });
}

const dimensionNames = Object.keys(DIMENSIONS) as (keyof typeof DIMENSIONS)[];

/** What there are daily sums of by key and model, and by what. */
const SUMMED = ['request_count', 'active_keys', 'tokens_total', 'tokens_prompt', 'total_usage', 'usage_byok'];
const OF_DAYS = ['model', 'endpoint', 'api_key_id', 'user', 'workspace'] as const;
/** There are sums of everything by one of these. */
const OF_ROUTES = ['model', 'provider', 'endpoint', 'workspace', 'api_type', 'status', 'error_type'] as const;
const OF_KEYS = ['api_key_id', 'user', 'workspace'] as const;

/** A filter whose values some rows have and some do not. */
function filter(
  fields: readonly (typeof dimensionNames)[number][],
  hashes: readonly string[],
  userId: string,
  workspaces: readonly string[],
) {
  const valuesOf = (field: (typeof dimensionNames)[number]): (string | number)[] => {
    if (field === 'api_key_id') return [...hashes, 'f'.repeat(64)];
    if (field === 'user') return [userId, 'user_nobody'];
    if (field === 'workspace') return [...workspaces];
    if (field === 'status') return [200, 400, 401];
    if (DIMENSIONS[field].values === 'boolean') return ['true', 'false'];
    return ['a/one', 'é/three', 'one', 'Provider two', 'x', 'Y', 'ü', "it's; -- %_", 'server', 'completions', 'global'];
  };
  return fc.constantFrom(...fields).chain((field) => {
    const ordered = ['text', 'integer'].includes(DIMENSIONS[field].values);
    const value = fc.constantFrom(...valuesOf(field));
    const scalar = fc.record({
      field: fc.constant(field),
      operator: fc.constantFrom('eq', 'neq', ...(ordered ? ['gt', 'gte', 'lt', 'lte'] : [])),
      value,
    });
    const list = fc.record(
      {
        field: fc.constant(field),
        operator: fc.constantFrom('in', 'not_in'),
        value: fc.array(value, { minLength: 1, maxLength: 3 }),
        include_unset: fc.boolean(),
      },
      { requiredKeys: ['field', 'operator', 'value'] },
    );
    return fc.oneof(scalar, list);
  });
}

function question(filters: Record<'any' | 'summed', ReturnType<typeof filter>>): fc.Arbitrary<Asked> {
  const minute = fc.integer({ min: -10, max: 24 * 60 * 10 }).map((minutes) => START + minutes * 60_000);
  // Whole days are answered from their sums where those say enough.
  const day = fc.integer({ min: -1, max: 10 }).map((days) => START + days * 24 * HOUR_MS);
  return fc
    .record(
      {
        metrics: fc.oneof(
          fc.uniqueArray(fc.constantFrom(...Object.keys(METRICS)), { minLength: 1, maxLength: 6 }),
          fc.uniqueArray(fc.constantFrom(...SUMMED), { minLength: 1, maxLength: 4 }),
        ),
        dimensions: fc.oneof(
          fc.uniqueArray(fc.constantFrom(...dimensionNames), { maxLength: 3 }),
          fc.uniqueArray(fc.constantFrom(...OF_DAYS), { maxLength: 3 }),
          fc.uniqueArray(fc.constantFrom(...OF_ROUTES), { maxLength: 3 }),
          fc.uniqueArray(fc.constantFrom(...OF_KEYS), { maxLength: 2 }),
        ),
        granularity: fc.constantFrom('minute', 'hour', 'day', 'week', 'month'),
        range: fc.oneof(fc.tuple(minute, minute), fc.tuple(day, day)).filter(([a, b]) => a !== b),
        filters: fc.oneof(fc.array(filters.any, { maxLength: 2 }), fc.array(filters.summed, { maxLength: 2 })),
        order: fc.tuple(fc.nat(), fc.constantFrom('asc', 'desc')),
        limit: fc.integer({ min: 1, max: 40 }),
        group_limit: fc.integer({ min: 1, max: 4 }),
      },
      { requiredKeys: ['metrics', 'range'] },
    )
    .map(({ range, order, ...rest }) => {
      const [start, end] = range.toSorted((a, b) => a - b) as [number, number];
      const fields = [
        ...rest.metrics,
        ...(rest.dimensions ?? []),
        'request_count',
        ...(rest.granularity ? ['date'] : []),
      ];
      return {
        ...rest,
        time_range: { start: new Date(start).toISOString(), end: new Date(end).toISOString() },
        ...(order && { order_by: { field: fields[order[0] % fields.length]!, direction: order[1] } }),
      };
    });
}

/** Sums of floating point differ in their last digits by the order of adding. */
function assertSame(actual: Row[], expected: Row[], asked: Asked): void {
  const rounded = (rows: Row[]) =>
    rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          typeof value === 'number' ? Number(value.toPrecision(10)) : value,
        ]),
      ),
    );
  assert.deepEqual(rounded(actual), rounded(expected), JSON.stringify(asked));
}

test('the reader of this test knows every metric that there is', () => {
  assert.deepEqual(Object.keys(METRICS).toSorted(), Object.keys(METRIC_NAMES).toSorted());
});

test('every question is answered as the rows say, in order, typed, within its limits', async (t) => {
  const gateway = await startGateway(t);
  const control = controlOf(gateway);
  const database = await openDatabase({ target: gateway.target, clock: systemClock, log: silentLog, poolSize: 2 });
  t.after(() => database.close());
  const second = await control.made({ name: 'second', slug: 'second' });
  const made = [await control.keyIn(undefined, 'one'), await control.keyIn(second.id, 'two')];
  await control.keyIn(second.id, 'of nobody', { creator_user_id: null });
  const stored = await database.query<KnownKey & { id: string; organization: string; workspace: string }>(
    `select id, hash, label, creator_user_id as "userId", organization_id as organization,
       coalesce(workspace_id::text, '') as workspace from api_keys where kind = 'inference' order by created_at`,
  );
  const keys = new Map(stored.map(({ id, hash, label, userId }) => [id, { hash, label, userId }]));
  const workspaces = [...new Set(stored.map(({ workspace }) => workspace))];
  const userId = stored.find((key) => key.hash === made[0]!.hash)!.userId!;
  const one = generation([...keys.keys()], workspaces);
  const rows = fc
    .sample(one, { numRuns: 250, seed: 7 })
    .map((row, at) => ({ ...row, id: `gen-${at}`, organizationId: stored[0]!.organization }));
  const strangers = fc.sample(one, { numRuns: 20, seed: 8 }).map((row, at) => ({ ...row, id: `gen-other-${at}` }));
  const hashes = [...keys.values()].map(({ hash }) => hash);
  const asked = question({
    any: filter(dimensionNames, hashes, userId, workspaces),
    summed: filter(OF_ROUTES, hashes, userId, workspaces),
  });
  const holds = () =>
    fc.assert(
      fc.asyncProperty(asked, async (asked) => {
        const { status, body } = await control.call('POST', '/analytics/query', asked);
        assert.equal(status, 200, `${JSON.stringify(asked)}: ${JSON.stringify(body)}`);
        const expected = expectedAnswer(asked, rows, keys);
        assertSame(body.data.data, expected.data, asked);
        assert.equal(body.data.metadata.row_count, expected.data.length);
        const truncated = expected.data.length > 0 && expected.data.length < expected.total;
        assert.equal(body.data.metadata.truncated, truncated, JSON.stringify(asked));
      }),
      { numRuns: samples(150), seed: 20_261_128 },
    );
  const isLate = ({ createdAt }: Generation) => [60, 61, 100].includes(Math.floor((createdAt - START) / HOUR_MS));
  await enterRows(database, [...rows.filter((row) => !isLate(row)), ...strangers]);
  await countTotals(database);
  await enterRows(database, rows.filter(isLate));
  assert.notEqual((await database.query('select hour from generation_hours_to_count')).length, 0, 'read from rows');
  await holds();
  await countTotals(database);
  await holds();
});
