/** A request under every kind of limit runs no database statement while no limit is near. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { tapDatabase } from '../../src/testing/database/database-tap.ts';
import { rowsOnce } from '../../src/testing/database/rows.ts';
import { type Gateway, PRICING, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { controlOf, type Json, type TeamKey } from '../workspaces/control.ts';

const FAR = 1_000_000_000;
const RATE_LIMITS = Object.fromEntries(
  ['requests', 'tokens'].flatMap((unit) => ['minute', 'hour', 'day'].map((period) => [`${unit}_per_${period}`, FAR])),
);
const BUDGETS = { lifetime: 900_000, monthly: 800_000, weekly: 700_000, daily: 600_000 };

/** A key that is held by a guardrail of 20 patterns, four budgets, its own limit, and every rate limit of both. */
async function governedKey(gateway: Gateway): Promise<TeamKey> {
  const { call, keyIn } = controlOf(gateway);
  const done = async (method: string, path: string, body: Json) => {
    const answer = await call(method, path, body);
    assert.ok(answer.status < 300, JSON.stringify(answer.body));
    return answer.body;
  };
  await done('PATCH', '/workspaces/default', { rate_limits: RATE_LIMITS });
  for (const [interval, limit_usd] of Object.entries(BUDGETS)) {
    await done('PUT', `/workspaces/default/budgets/${interval}`, { limit_usd });
  }
  const key = await keyIn(undefined, 'governed', { limit: 500_000, limit_reset: 'daily', rate_limits: RATE_LIMITS });
  const guardrail = await done('POST', '/guardrails', {
    name: 'governed',
    limit_usd: 400_000,
    reset_interval: 'monthly',
    content_filters: Array.from({ length: 20 }, (_, index) => ({
      pattern: index % 2 === 0 ? `codename-${index}\\b` : `\\b[A-Z]{2}${index}\\d{3,6}\\b`,
      action: ['flag', 'redact', 'block'][index % 3],
      apply_to: ['request', 'response'],
    })),
    content_filter_builtins: [{ slug: 'email', action: 'redact', apply_to: ['request', 'response'] }],
  });
  await done('POST', `/guardrails/${guardrail.data.id}/assignments/keys`, { key_hashes: [key.hash] });
  return key;
}

async function scene(t: TestContext) {
  const database = await emptyDatabase(t, migrations);
  const tap = await tapDatabase(t, database);
  const chat = { kind: 'chat', model: { pricing: PRICING } };
  const gateway = await startGateway(t, { target: tap.target, providers: { whole: chat, streamed: chat } });
  t.after(() => tap.close());
  const told = { text: 'write to ann@example.org', usage: { input: 100, output: 20 } };
  gateway.upstream.script('whole', { ...answerOf('chat', false, told), repeat: true });
  gateway.upstream.script('streamed', { ...answerOf('chat', true, told), repeat: true });
  const key = await governedKey(gateway);
  const ask = async (route: string, body: Json) => {
    const answer = await gateway.post(route, body, { authorization: `Bearer ${key.token}` });
    return { status: answer.status, limit: answer.headers.get('x-ratelimit-limit'), text: await answer.text() };
  };
  return { gateway, tap, database, ask };
}

const user = (content: string) => [{ role: 'user', content }];
const ASKED: [route: string, body: Json][] = [
  ['/chat/completions', { model: 'test/whole', messages: user('ask codename-0'), max_tokens: 50 }],
  ['/chat/completions', { model: 'test/streamed', messages: user('or bob@example.org'), stream: true }],
  ['/messages', { model: 'test/whole', messages: user('AB1234 is flagged'), max_tokens: 50 }],
  ['/responses', { model: 'test/streamed', input: 'hello', stream: true }],
];

/** What the job runner asks in the background, whether requests come or not. */
const isBackground = (statement: string) =>
  statement.includes('gatehouse_jobs') || /SET LOCAL (?:lock_timeout|idle_in_transaction)/.test(statement);

test('governed requests cause not one statement while no limit is near, and their rows go in together', async (t) => {
  const { gateway, tap, database, ask } = await scene(t);
  for (const [route, body] of ASKED) assert.equal((await ask(route, body)).status, 200);
  await rowsOnce(database, ASKED.length);
  // Periodic work, which does not depend on requests, does not run while time is frozen.
  gateway.clock.stand();
  await tap.quiet();

  const ROUNDS = 25;
  const before = tap.statements.length;
  for (let round = 0; round < ROUNDS; round++) {
    const answers = await Promise.all(ASKED.map(([route, body]) => ask(route, body)));
    for (const { status, limit, text } of answers) {
      assert.equal(status, 200, text);
      assert.equal(limit, String(FAR), 'its rate limits are counted');
      assert.match(text, /\[EMAIL\]/, 'its guardrail looks through the answer');
    }
  }
  assert.equal((await ask('/chat/completions', { ...ASKED[0]![1], messages: user('codename-2!') })).status, 403);
  await tap.quiet();
  assert.deepEqual(
    tap.statements.slice(before).filter((statement) => !isBackground(statement)),
    [],
  );

  gateway.clock.goOn();
  const rows = await rowsOnce(database, ASKED.length * (ROUNDS + 1) + 1);
  const { true: blocked = [], false: answered = [] } = Object.groupBy(rows, ({ status }) => String(status === 403));
  assert.deepEqual(
    blocked.map(({ cost }) => cost),
    [0n],
    'what a filter blocks has a row at no cost',
  );
  assert.ok(answered.every(({ cost, estimated }) => cost > 0n && !estimated));
  await tap.quiet();
  const entering = tap.statements.slice(before).filter((statement) => statement.includes('insert into generations'));
  assert.equal(entering.length, 1);
});

test('the lease of the first request covers the following ones', async (t) => {
  const { gateway, tap, ask } = await scene(t);
  gateway.clock.stand();
  await tap.quiet();
  const leases = () => tap.statements.filter((statement) => /spend_leases|rate_leases/.test(statement)).length;
  const [route, body] = ASKED[0]!;
  assert.equal((await ask(route, body)).status, 200);
  const first = leases();
  assert.ok(first > 0, 'the leases are asked for');
  for (const { status } of await Promise.all(Array.from({ length: 20 }, () => ask(route, body)))) {
    assert.equal(status, 200);
  }
  await tap.quiet();
  assert.equal(leases(), first);
});
