/**
 * The list behind the explorer of the console, over a million generations on 100 days: pages, filters with and without an
 * index, and models, providers and APIs that are rare or absent.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { connectOnce } from '../../src/testing/database/database.ts';
import { countTotals, DAY_KEYS, DAY_SUMS } from '../../src/testing/database/ledger-rows.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { controlOf } from '../workspaces/control.ts';

const ROWS = 1_000_000;
const DAYS = 100;
/** One row of this model and provider in so many, on one day. */
const RARE = `n between 700001 and 710000 and n % 500 = 0`;
/** One row a day. */
const SELDOM = `n % ${ROWS / DAYS} = 5001`;
const APART = `interval '${(DAYS * 86_400) / ROWS} seconds'`;

test('a million generations are listed in pages and by filters', async (t) => {
  const gateway = await startGateway(t, { providers: { one: {} } });
  const { call } = controlOf(gateway);
  gateway.upstream.script('one', chatWhole('hi'));
  await (
    await gateway.post('/chat/completions', { model: 'test/one', messages: [{ role: 'user', content: 'x' }] })
  ).text();
  assert.equal((await call('GET', '/generations')).body.data.length, 1);

  const client = await connectOnce(t, gateway.target);
  const { rows } = await client.query(
    `select column_name as name from information_schema.columns where table_name = 'generations' and is_generated = 'NEVER'`,
  );
  const changed: Record<string, string> = {
    id: `'gen-' || lpad(to_hex(floor(extract(epoch from g.created_at - n * ${APART}) * 1000)::bigint), 12, '0')
      || lpad(to_hex(${ROWS} - n), 20, '0')`,
    created_at: `g.created_at - n * ${APART}`,
    session_id: `'session-' || n`,
    model: `case when ${RARE} then 'test/rare' else g.model end`,
    provider_name: `case when ${RARE} then 'Rare' when ${SELDOM} then 'Seldom' else g.provider_name end`,
    api_type: `case when ${RARE} then 'rerank' when ${SELDOM} then 'tts' else g.api_type end`,
  };
  const names = rows.map(({ name }: { name: string }) => name);
  await client.query(`do $$ declare month timestamptz; begin
    for month in select date_trunc('month', created_at - n * interval '1 month', 'UTC')
      from generations, generate_series(1, ${Math.ceil(DAYS / 28)}) n
    loop
      execute format('create table if not exists generations_%s partition of generations for values from (%L) to (%L)',
        to_char(month at time zone 'UTC', 'YYYY_MM'), month, date_add(month, interval '1 month', 'UTC'));
    end loop; end $$`);
  await client.query(
    `insert into generations (${names.join(', ')})
     select ${names.map((name) => changed[name] ?? `g.${name}`).join(', ')}
       from (select * from generations) g, generate_series(1, ${ROWS}) n`,
  );
  await client.query(
    `truncate generation_days, generation_model_days;
     insert into generation_days (organization_id, workspace_id, key_id, day, model, endpoint_id, provider_name, requests,
         prompt_tokens, completion_tokens, reasoning_tokens, cost_nano, byok_nano)
       select organization_id, workspace_id, key_id, day::date, model, endpoint_id, provider_name, requests, prompt_tokens,
           completion_tokens, reasoning_tokens, cost_nano, byok_nano
         from (select ${DAY_SUMS} from generations group by ${DAY_KEYS}) sums`,
  );
  // As autovacuum does while rows arrive.
  await client.query('vacuum analyze generations');
  const database = await openDatabase({ target: gateway.target, clock: systemClock, log: silentLog, poolSize: 1 });
  t.after(() => database.close());
  const countedAt = performance.now();
  await countTotals(database);
  t.diagnostic(`the totals of all hours: ${Math.round(performance.now() - countedAt)} ms`);
  await client.query('analyze generation_totals');

  const timed = async (what: string, path: string) => {
    const startedAt = performance.now();
    const { status, body } = await call('GET', path);
    t.diagnostic(`${what}: ${Math.round(performance.now() - startedAt)} ms`);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  const first = await timed('the first page', '/generations');
  const second = await timed('the next page', `/generations?cursor=${first.next_cursor}`);
  const ids = [...first.data, ...second.data].map(({ id }: { id: string }) => id);
  assert.equal(new Set(ids).size, 100);
  assert.deepEqual(ids, ids.toSorted().reverse());
  const found = await timed('one session', '/generations?session_id=session-777777');
  assert.equal(found.data.length, 1);
  for (const outcome of ['failed', 'cancelled', 'guarded']) {
    const rare = await timed(`no row that is ${outcome}`, `/generations?outcome=${outcome}`);
    assert.equal(rare.data.length, 0);
  }
  await timed('no row with this error', '/generations?error_type=server');
  const absent = await timed('no row of a model, without an index', '/generations?model=test/two');
  assert.equal(absent.data.length, 0);
  const seldom = await timed('a model of one day', '/generations?model=test/rare');
  assert.equal(seldom.data.length, 20);
  await timed('a common model', '/generations?model=test/one');
  await timed('no row of a workspace', `/generations?workspace_id=${crypto.randomUUID()}`);
  for (const [name, rare, daily] of [
    ['provider', 'Rare', 'Seldom'],
    ['api_type', 'rerank', 'tts'],
  ]) {
    const none = await timed(`no row with this ${name}`, `/generations?${name}=nobody`);
    assert.equal(none.data.length, 0);
    const ofOneDay = await timed(`a ${name} of one day`, `/generations?${name}=${rare}`);
    assert.equal(ofOneDay.data.length, 20);
    const ofEachDay = await timed(`a ${name} with a request a day`, `/generations?${name}=${daily}&limit=100`);
    assert.equal(ofEachDay.data.length, 100);
  }
  await timed('a common provider', '/generations?provider=one');
  await timed('no row of this provider that succeeded', '/generations?provider=nobody&outcome=succeeded');
  const none = await timed('no row at all', '/generations?external_user=nobody');
  assert.equal(none.data.length, 0);
});
