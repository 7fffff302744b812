/** The list behind the explorer of the console, over a million generations: pages, and filters with and without an index. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectOnce } from '../../src/testing/database/database.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { controlOf } from '../workspaces/control.ts';

const ROWS = 1_000_000;

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
    id: `'gen-' || lpad(to_hex(floor(extract(epoch from g.created_at) * 1000)::bigint - n / 1000), 12, '0')
      || lpad(to_hex(${ROWS} - n), 20, '0')`,
    created_at: `g.created_at - n * interval '1 microsecond'`,
    session_id: `'session-' || n`,
  };
  const names = rows.map(({ name }: { name: string }) => name);
  await client.query(
    `insert into generations (${names.join(', ')})
     select ${names.map((name) => changed[name] ?? `g.${name}`).join(', ')}
       from (select * from generations) g, generate_series(1, ${ROWS}) n`,
  );
  await client.query('analyze generations');

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
  await timed('no row of a model, without an index', '/generations?model=test/two');
  const none = await timed('no row at all', '/generations?external_user=nobody');
  assert.equal(none.data.length, 0);
});
