/** When the items of batches run: turns of workspaces, limits of the moment, load of the upstream, the end of the window. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { connectOnce } from '../../src/testing/database/database.ts';
import { type Gateway, type GatewayOptions, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply } from '../../src/testing/upstream/answers.ts';
import { type Plan, PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';
import { controlOf } from '../workspaces/control.ts';
import { batchesOf, chatBatch, type Json } from './batches-client.ts';

const DAY_MS = 24 * 3_600_000;

async function planned(t: TestContext, options: GatewayOptions = {}) {
  const upstream = await new PlannedUpstream().listen();
  t.after(() => upstream.close());
  const gateway = await startGateway(t, { ...options, providers: { planned: { base_url: upstream.url } } });
  return { upstream, gateway, control: controlOf(gateway) };
}

const plannedBatch = (name: string, count: number, plan: Omit<Plan, 'tag'> = {}) =>
  chatBatch(
    Array.from({ length: count }, (_, n) => {
      const tag = `${name}-${n}`;
      return {
        custom_id: tag,
        body: { max_tokens: 20, messages: [{ role: 'user', content: JSON.stringify({ tag, ...plan }) }] },
      };
    }),
    { model: 'test/planned' },
  );

/** Until the condition holds, while time passes quickly, but not so quickly that requests time out. */
function passing({ clock }: Gateway, condition: () => Promise<boolean>, what: string): Promise<boolean> {
  let polls = 0;
  return until(async () => {
    if (await condition()) return true;
    polls += 1;
    if (polls % 4 === 0) clock.jump(4_000);
    return false;
  }, what);
}

test('a workspace whose many batches fill its places does not delay the small batch of another', async (t) => {
  const { upstream, gateway, control } = await planned(t);
  const [large, small] = [
    await control.made({ name: 'Large', slug: 'large' }),
    await control.made({ name: 'Small', slug: 'small' }),
  ];
  const ofLarge = batchesOf(gateway, (await control.keyIn(large.id, 'large')).token);
  const ofSmall = batchesOf(gateway, (await control.keyIn(small.id, 'small')).token);
  // More than a process has open.
  for (let n = 0; n < 80; n += 1) await ofLarge.submitted(plannedBatch(`large-${n}`, 3, { hold: 'head' }));
  // Seven eighths of 64.
  await until(() => upstream.open === 56, 'the large workspace has all the places that it may have');
  const batch = await ofSmall.ended((await ofSmall.submitted(plannedBatch('small', 10))).id);
  assert.deepEqual(batch.request_counts, { total: 10, completed: 10, failed: 0 });
  assert.equal(upstream.open, 56, 'nothing of the other has ended meanwhile');
});

test('a rate limit of the key holds a batch up until its window is over, and fails nothing', async (t) => {
  const { gateway, control } = await planned(t);
  const made = await control.call('POST', '/keys', { name: 'slow', rate_limits: { requests_per_minute: 5 } });
  const { submitted, send, ended } = batchesOf(gateway, made.body.key);
  const { id } = await submitted(plannedBatch('item', 12));
  const completed = async () => (await send('GET', `/batches/${id}`)).body.request_counts.completed;
  for (const count of [5, 10, 12]) {
    await passing(gateway, async () => (await completed()) >= count, `${count} items have run`);
  }
  assert.deepEqual((await ended(id)).request_counts, { total: 12, completed: 12, failed: 0 });
  const client = await connectOnce(t, gateway.target);
  await until(async () => (await client.query('select from generations')).rowCount === 12, 'every row is entered');
  const { rows } = await client.query(
    `select count(*)::int as n from generations group by date_trunc('minute', created_at) order by min(created_at)`,
  );
  assert.ok(
    rows.every(({ n }) => n <= 5),
    JSON.stringify(rows),
  );
});

test('budgets and rate limits of an item are those of the day on which it runs', async (t) => {
  const { gateway, control } = await planned(t);
  // Of the six items, which cost 0.003 each, half run on the first day; the limit is not enough for all of them in one.
  const made = await control.call('POST', '/keys', {
    name: 'daily',
    ...{ limit: 0.0095, limit_reset: 'daily', rate_limits: { requests_per_day: 3 } },
  });
  const { submitted, send, ended } = batchesOf(gateway, made.body.key);
  // Not at the end of a day, nor at its very beginning: the batch has to run in two days, and expires after 24 hours.
  const untilMidnight = () => DAY_MS - (gateway.clock.now() % DAY_MS);
  if (untilMidnight() < 3_600_000) gateway.clock.jump(untilMidnight() + 3_600_000);
  const { id } = await submitted(plannedBatch('item', 6, { promptTokens: 1_000, completionTokens: 0 }));
  const counts = async () => (await send('GET', `/batches/${id}`)).body.request_counts;
  await until(async () => (await counts()).completed === 3, 'three items have run');
  gateway.clock.jump(untilMidnight());
  await passing(gateway, async () => (await counts()).completed === 6, 'the others run');
  const batch = await ended(id);
  assert.deepEqual([batch.status, batch.request_counts], ['completed', { total: 6, completed: 6, failed: 0 }]);
});

test('when the window ends, items in flight keep their results, and only then the batch expires', async (t) => {
  const { upstream, gateway } = await planned(t);
  const { submitted, send, ended } = batchesOf(gateway);
  const client = await connectOnce(t, gateway.target);
  // A window that is shorter than the timeouts of upstream calls.
  await client.query(
    `create function shorten() returns trigger language plpgsql as
      $$ begin new.expires_at = new.created_at + interval '30 s'; return new; end $$`,
  );
  await client.query('create trigger shorten before insert on batches for each row execute function shorten()');
  const { id } = await submitted(plannedBatch('item', 10, { hold: 'head' }));
  await until(() => upstream.open === 4, 'four items are in flight');
  gateway.clock.jump(30_000);
  // Longer than claims last, so that the state is looked at often.
  for (let n = 0; n < 4; n += 1) {
    gateway.clock.jump(5_000);
    assert.equal((await send('GET', `/batches/${id}`)).body.status, 'in_progress');
  }
  upstream.release();
  const batch = await ended(id);
  assert.deepEqual([batch.status, batch.request_counts], ['expired', { total: 10, completed: 4, failed: 6 }]);
  assert.equal(upstream.tags('asked').size, 4, 'nothing more has begun');
  const errors = batch.results.map(({ error }: Json) => error?.type ?? null);
  assert.deepEqual(errors, [...Array(4).fill(null), ...Array(6).fill('batch_expired')]);
  assert.ok(batch.usage.total_tokens > 0 && batch.usage.cost > 0);
});

test('an upstream that takes few requests at once is asked for few at once', async (t) => {
  const MOST = 5;
  let [open, asked, refused] = [0, 0, 0];
  const held: (() => void)[] = [];
  const server = http.createServer((request, response) => {
    request.resume();
    asked += 1;
    if (open >= MOST) {
      refused += 1;
      response.writeHead(429, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: 'too many at once', type: 'rate_limit', code: 429 } }));
      return;
    }
    open += 1;
    const answer = () => {
      open -= 1;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(chatReply({ text: 'done' })));
    };
    held.push(answer);
    // All that came together are answered together.
    setImmediate(() => setImmediate(() => held.shift()?.()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gateway = await startGateway(t, { pace: 10, providers: { planned: { base_url: url } } });
  const { submitted, ended } = batchesOf(gateway);
  const batch = await ended((await submitted(plannedBatch('item', 200))).id);
  assert.deepEqual(batch.request_counts, { total: 200, completed: 200, failed: 0 });
  assert.equal(asked, 200 + refused);
  t.diagnostic(`${refused} refusals`);
  assert.ok(refused < 100, `${refused} refusals`);
});
