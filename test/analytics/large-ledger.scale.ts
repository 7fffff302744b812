/**
 * Millions of rows in the ledger: `GET /activity`, `/generation`, `/generations` and `/analytics/query` keep their times.
 * GATEHOUSE_SCALE_ROWS is the number of rows (5 million; 50 million take some 60 GB), GATEHOUSE_SCALE_P95_MS the budget.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { p95, scaleSize } from '../process/scale-size.ts';

const DAY_MS = 86_400_000;
const DAYS = 90;
const ASKED = 60;

/** By column, what differs between the rows; `i` counts from 1, `at` is the time. */
const VARIED: Readonly<Record<string, string>> = {
  id: `'gen-' || lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(i), 19, '8')`,
  created_at: 'at',
  model: `'test/model-' || i % 40`,
  endpoint_id: `'endpoint-' || i % 60`,
  provider_name: `'Provider ' || i % 12`,
  session_id: `'session-' || i / 20`,
  external_user: `'user-' || i % 5000`,
  status: `case when i % 50 = 0 then 502 else 200 end`,
  cost_nano: '1000 + i % 900000',
  output_tokens: '10 + i % 3000',
  input_tokens: '50 + i % 20000',
};

test('the ledger answers at p95 within its budget', async (t) => {
  const count = scaleSize('ROWS', 5_000_000);
  const budget = scaleSize('P95_MS', 100);
  const gateway = await startGateway(t, { providers: { one: {} } });
  gateway.upstream.script('one', [{ ...chatWhole('hi'), repeat: true }]);
  const asked = await gateway.post('/chat/completions', {
    model: 'test/one',
    messages: [{ role: 'user', content: 'x' }],
  });
  assert.equal(asked.status, 200, await asked.text());
  const client = await connect(gateway.target);
  t.after(() => client.end());
  await client.query('set statement_timeout = 0');
  const startedAt = performance.now();
  await fill(client, count, gateway.clock.now());
  const filledMs = performance.now() - startedAt;
  const { rows: sizes } = await client.query(
    `select pg_size_pretty(sum(pg_total_relation_size(relid))) as size from pg_partition_tree('generations')`,
  );
  t.diagnostic(`${count} rows in ${Math.round(filledMs / 1000)} s, ${sizes[0].size}`);
  const { rows: ids } = await client.query<{ id: string }>(
    'select id from generations tablesample system (0.01) limit $1',
    [ASKED],
  );
  // Whole days, as the console asks for, are answered from their sums.
  const today = Math.floor(gateway.clock.now() / DAY_MS) * DAY_MS;
  const end = new Date(today).toISOString();
  const start = (days: number) => new Date(today - days * DAY_MS).toISOString();
  const query = (dimensions: string[], days: number) => ({
    ...{ metrics: ['total_usage', 'request_count'], dimensions, granularity: 'day' },
    time_range: { start: start(days), end },
  });
  const post = (body: object) => () =>
    fetch(`${gateway.api}/analytics/query`, {
      method: 'POST',
      headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const cases: Record<string, (at: number) => Promise<Response>> = {
    '/activity': () => gateway.get('/activity', MANAGEMENT_KEY),
    '/generation': (at) => gateway.get(`/generation?id=${ids[at % ids.length]!.id}`, INFERENCE_KEY),
    '/generations, newest': () => gateway.get('/generations', MANAGEMENT_KEY),
    '/generations of a model': (at) => gateway.get(`/generations?model=test/model-${at % 40}`, MANAGEMENT_KEY),
    '/generations of a session': (at) => gateway.get(`/generations?session_id=session-${at * 31}`, MANAGEMENT_KEY),
    '/generations of an end user': (at) => gateway.get(`/generations?external_user=user-${at * 31}`, MANAGEMENT_KEY),
    '/analytics/query by model, 30 days': post(query(['model'], 30)),
  };
  const late: string[] = [];
  for (const [name, ask] of Object.entries(cases)) {
    const times: number[] = [];
    for (let at = 0; at < ASKED; at++) {
      const before = performance.now();
      const response = await ask(at);
      const text = await response.text();
      assert.equal(response.status, 200, `${name}: ${text.slice(0, 300)}`);
      times.push(performance.now() - before);
    }
    t.diagnostic(
      `${name}: p95 ${p95(times).toFixed(1)} ms, median ${times.toSorted((a, b) => a - b)[ASKED / 2]!.toFixed(1)} ms`,
    );
    if (p95(times) > budget) late.push(`${name}: ${p95(times).toFixed(1)} ms`);
  }
  assert.deepEqual(late, []);
});

/** Copies the one row that is there, spread over the last months, with its sums by day. */
async function fill(client: Awaited<ReturnType<typeof connect>>, count: number, nowMs: number): Promise<void> {
  const { rows: columns } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute
     where attrelid = 'generations'::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
  );
  const names = columns.map(({ name }) => name);
  const values = names.map((name) => VARIED[name] ?? `g.${name}`);
  for (let day = DAYS + 31; day >= -1; day -= 1) {
    const month = new Date(nowMs - day * DAY_MS).toISOString().slice(0, 7);
    const next = new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 1)).toISOString().slice(0, 10);
    await client.query(
      `create table if not exists generations_${month.replace('-', '_')} partition of generations
       for values from ('${month}-01T00:00:00+00') to ('${next}T00:00:00+00')`,
    );
  }
  await client.query('create temp table first as select * from generations limit 1');
  const perDay = Math.ceil(count / DAYS);
  for (let day = 0; day < DAYS; day++) {
    await client.query(
      `insert into generations (${names.join(', ')})
       select ${values.join(', ')}
       from (select ${day * perDay}::bigint + n as i,
               to_timestamp(${(nowMs - DAYS * DAY_MS) / 1000} + ${day * 86_400} + 86400.0 * n / ${perDay}) as at
             from generate_series(1, ${perDay}) n) s, first g`,
    );
  }
  await client.query(
    `insert into generation_days (organization_id, day, workspace_id, key_id, model, endpoint_id, provider_name, requests,
       prompt_tokens, completion_tokens, reasoning_tokens, cost_nano, byok_nano)
     select organization_id, (created_at at time zone 'UTC')::date, workspace_id, key_id, model, coalesce(endpoint_id, ''),
       coalesce(max(provider_name), ''), count(*), sum(input_tokens), sum(output_tokens), 0, sum(cost_nano), 0
     from generations where id <> (select id from first) group by 1, 2, 3, 4, 5, 6
     on conflict do nothing`,
  );
  await client.query('analyze generations');
  await client.query('analyze generation_days');
}
