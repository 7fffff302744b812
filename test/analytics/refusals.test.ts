/** Refused queries and the paths of their errors, attempted SQL injection, and queries that take too long. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { analyticsOperations } from '../../src/analytics/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { GatewayError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import type { Exchange } from '../../src/http/operation.ts';
import { type Database, openDatabase } from '../../src/storage/database.ts';
import { enterRows } from '../../src/testing/database/ledger-rows.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { sampleAccepted, sampleGeneration } from '../../src/testing/laws/spend-samples.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const hooks = { after: (close: () => unknown) => after(close as () => Promise<void>) };
const gateway = await startGateway(hooks);
const control = controlOf(gateway);
const ask = (body: Json) => control.call('POST', '/analytics/query', body);
const count = { metrics: ['request_count'] };
const range = (start: string, end: string) => ({ ...count, time_range: { start, end } });
const filter = (field: string, operator: string, value: Json, more: Json = {}) => ({
  ...count,
  filters: [{ field, operator, value, ...more }],
});

const REFUSED: Record<string, [body: Json, path: string]> = {
  'no metric': [{ metrics: [] }, 'metrics'],
  'an unknown metric': [{ metrics: ['request_count', 'usage_data'] }, 'metrics[1]'],
  'a metric of the prototype': [{ metrics: ['constructor'] }, 'metrics[0]'],
  'a metric twice': [{ metrics: ['request_count', 'request_count'] }, 'metrics[1]'],
  'a metric that is SQL': [{ metrics: ['count(*)) from generations; drop table generations; --'] }, 'metrics[0]'],
  'an unknown dimension': [{ ...count, dimensions: ['app'] }, 'dimensions[0]'],
  'a dimension twice': [{ ...count, dimensions: ['model', 'model'] }, 'dimensions[1]'],
  'an unknown granularity': [{ ...count, granularity: 'year' }, 'granularity'],
  'an unknown operator': [filter('model', 'like', 'x'), 'filters[0].operator'],
  'an unknown field': [filter('request_count', 'gt', 1), 'filters[0].field'],
  'an array for one value': [filter('model', 'eq', ['x']), 'filters[0].value'],
  'one value for an array': [filter('model', 'in', 'x'), 'filters[0].value'],
  'an empty array': [filter('model', 'in', []), 'filters[0].value'],
  'an order of keys': [filter('api_key_id', 'gt', 'x'), 'filters[0].operator'],
  'a status that is no number': [filter('status', 'eq', 'ok'), 'filters[0].value'],
  'a status in an array': [filter('status', 'in', [200, 'ok']), 'filters[0].value[1]'],
  'a boolean that is none': [filter('streamed', 'eq', 'yes'), 'filters[0].value'],
  'a character that no text holds': [filter('model', 'eq', 'a\0b'), 'filters[0].value'],
  'include_unset elsewhere': [filter('model', 'eq', 'x', { include_unset: true }), 'filters[0].include_unset'],
  'an order by what is not asked': [{ ...count, order_by: { field: 'model', direction: 'asc' } }, 'order_by.field'],
  'an order by date without one': [{ ...count, order_by: { field: 'date', direction: 'asc' } }, 'order_by.field'],
  'an order in no direction': [
    { ...count, order_by: { field: 'request_count', direction: 'up' } },
    'order_by.direction',
  ],
  'a limit of none': [{ ...count, limit: 0 }, 'limit'],
  'a limit of too many': [{ ...count, limit: 10_001 }, 'limit'],
  'a group limit of none': [{ ...count, group_limit: 0 }, 'group_limit'],
  'a time without seconds': [range('2026-01-01T00:00Z', '2026-01-02T00:00:00Z'), 'time_range.start'],
  'a day that there is not': [range('2026-01-01T00:00:00Z', '2026-02-30T00:00:00Z'), 'time_range.end'],
  'an end before the start': [range('2026-01-02T00:00:00Z', '2026-01-01T00:00:00Z'), 'time_range.end'],
  'a member that there is not': [{ ...count, compare: true }, 'compare'],
  classifiers: [{ ...count, classifier_dimensions: { classifier_id: 'x' } }, 'classifier_dimensions'],
  'filters of classifiers': [
    { ...count, classifier_filters: { classifier_id: 'x', filters: [] } },
    'classifier_filters',
  ],
};

for (const [what, [body, path]] of Object.entries(REFUSED)) {
  test(`${what} is refused with 400, and the message names ${path}`, async () => {
    const { status, body: answer } = await ask(body);
    assert.equal(status, 400, JSON.stringify(answer));
    assert.ok(answer.error.message.includes(path), answer.error.message);
  });
}

test('only management keys may ask', async () => {
  assert.equal((await control.call('POST', '/analytics/query', count, INFERENCE_KEY)).status, 403);
  assert.equal((await control.call('GET', '/analytics/meta', undefined, INFERENCE_KEY)).status, 403);
});

test('an unknown key is a warning, and the query is answered', async () => {
  const { body } = await ask({ ...count, ...filter('api_key_id', 'in', ['f'.repeat(64), 12_345]) });
  assert.deepEqual(body.data.data, [{ request_count: 0 }]);
  assert.deepEqual(body.data.warnings, [`api_key_id: unknown key ${'f'.repeat(64)}`, 'api_key_id: unknown key 12345']);
});

test('a key is found by its hash and its number, and by those before its rotation', async () => {
  const former = await control.keyIn(undefined, 'numbered');
  const rotation = { revoke_previous_after_seconds: 0 };
  const { data: key } = (await control.call('POST', `/keys/${former.hash}/rotate`, rotation)).body;
  for (const value of [key.id, String(key.id), key.hash, key.hash.toUpperCase(), former.hash, former.id]) {
    const { status, body } = await ask(filter('api_key_id', 'eq', value));
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.data.warnings, undefined, String(value));
  }
});

async function manyRows(database: Database, organizationId: string): Promise<void> {
  const base = { organizationId, createdAt: Date.now() - 60_000 };
  const rows = Array.from({ length: 1_000 }, (_, at) =>
    sampleGeneration(sampleAccepted(`row-${at}`, base), { model: `model-${at}`, latencyMs: at }),
  );
  await enterRows(database, rows);
}

test('a slow query is 408, is cancelled, and its connection stays usable', async (t) => {
  const { target } = gateway;
  const database = await openDatabase({ target, clock: systemClock, log: silentLog, poolSize: 1 });
  t.after(() => database.close());
  const [organization] = await database.query<{ id: string }>('select id from organizations');
  await manyRows(database, organization!.id);
  const usual = await database.query('show statement_timeout');
  // Whoever reads the table waits for this transaction, as for a table that is too large.
  const blocker = await openDatabase({ target, clock: systemClock, log: silentLog, poolSize: 1 });
  t.after(() => blocker.close());
  const parts = {
    database,
    clock: systemClock,
    catalog: () => ({ models: [], find: () => undefined }),
    entered: async () => {},
    timeoutMs: 50,
  };
  const operation = analyticsOperations(parts).find(({ id }) => id === 'queryAnalytics')!;
  const call = async () => {
    let answer: Json;
    const exchange = {
      caller: { organizationId: organization!.id },
      body: { ...count, dimensions: ['model'] },
      reply: (status: number, value: unknown) => {
        answer = { status, value };
      },
    };
    await operation.handle(exchange as unknown as Exchange<never>);
    return answer;
  };
  await blocker.transaction(async (tx) => {
    await tx.query('lock table generations in access exclusive mode');
    await assert.rejects(call(), (error: GatewayError) => error.status === 408);
    const running = await tx.query(
      `select query from pg_stat_activity where datname = current_database() and state = 'active' and query ~ 'grouped'
         and pid <> pg_backend_pid()`,
    );
    assert.deepEqual(running, []);
  });
  // The pool has one connection, and its timeout was of that transaction only.
  assert.deepEqual(await database.query('show statement_timeout'), usual);
  // A busy machine may need more for the rows.
  parts.timeoutMs = 60_000;
  const { status, value } = await call();
  assert.equal(status, 200);
  assert.equal(value.data.data.length, 1_000);
});
