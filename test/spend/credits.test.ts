/** The account's balance: set at the machine while gateways run, and enforced like a budget. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { organizationId } from '../../src/access/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { setBalance } from '../../src/spend/index.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { runCommand } from '../../src/testing/process/command.ts';
import { startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const TURN = { model: 'simulated/echo', max_tokens: 1_000, messages: [{ role: 'user', content: 'hi' }] };

/** As `gatehouse credits` does it; 'unset' gives the balance back to the configuration. */
async function setTo({ target }: Gateway, balance: bigint | null | 'unset'): Promise<void> {
  const parts = { target, clock: systemClock, log: silentLog };
  const database = await openDatabase(parts);
  const changes = await openChanges({ ...parts, database });
  try {
    const account = (await organizationId(database))!;
    await setBalance({ database, changes, clock: systemClock }, account, balance === 'unset' ? undefined : balance);
  } finally {
    await changes.close();
    await database.close();
  }
}

test('the balance holds at once in every process, goes before the yaml, and refuses as a budget does', async (t) => {
  const options = { yaml: { account: { balance_usd: 5 }, providers: [{ id: 'simulated', kind: 'simulated' }] } };
  const a = await startGateway(t, options);
  const b = await startGateway(t, { ...options, target: a.target });
  const both = [a, b].map((gateway) => controlOf(gateway));
  const credits = async () => Promise.all(both.map(async ({ call }) => (await call('GET', '/credits')).body.data));
  const ask = (n: number) => both[n]!.call('POST', '/chat/completions', TURN, INFERENCE_KEY);
  assert.deepEqual(
    (await credits()).map(({ total_credits, unlimited }) => [total_credits, unlimited]),
    [
      [5, false],
      [5, false],
    ],
  );
  assert.equal((await ask(0)).status, 200);
  await setTo(a, 1_000n);
  for (const n of [0, 1]) {
    const { status, body } = await ask(n);
    assert.equal(status, 402, JSON.stringify(body));
    assert.match(body.error.message, /could cost 0\.00\d+ USD, but .* are left in the account balance/);
    assert.equal(body.error.metadata.budget.scope, 'account');
    assert.equal(body.error.metadata.budget.limit_usd, 0.000001);
    const budgets = (await both[n]!.call('GET', '/budget', undefined, INFERENCE_KEY)).body.data as Json[];
    assert.deepEqual(
      [budgets[0].scope, budgets[0].reset_interval, budgets[0].limit_usd],
      ['account', 'lifetime', 0.000001],
    );
  }
  await setTo(a, null);
  for (const n of [0, 1]) assert.equal((await ask(n)).status, 200);
  assert.deepEqual(
    (await credits()).map(({ unlimited }) => unlimited),
    [true, true],
  );
  const later = await startGateway(t, { ...options, target: a.target });
  assert.equal((await controlOf(later).call('GET', '/credits')).body.data.unlimited, true, 'it survives a start');
  await setTo(a, 'unset');
  assert.deepEqual(
    (await credits()).map(({ total_credits }) => total_credits),
    [5, 5],
  );
  const entries = (await both[0]!.call('GET', '/audit?action=credits.updated')).body.data as Json[];
  assert.deepEqual(
    entries.map(({ after }) => after.balance_usd),
    ['as configured', 'unlimited', 0.000001],
  );
});

test('an operator sets, shows and unsets the balance while the gateway runs', async (t) => {
  const gateway = await startGatewayProcess(t, {
    yaml: { account: { balance_usd: 7 }, providers: [{ id: 'simulated', kind: 'simulated' }] },
  });
  const run = async (...args: string[]) => {
    const { code, out, err } = await runCommand(gateway.home, ['credits', ...args]);
    return { code, out: out + err };
  };
  const shown = async () => (await controlOf(gateway).call('GET', '/credits')).body.data.total_credits;
  assert.match((await run('show')).out, /^balance {4}7 USD \(from the yaml\)\nspent {6}0 USD\nremaining {2}7 USD\n$/);
  assert.match((await run('set', '12.5')).out, /12\.5 USD \(set by the command line\)/);
  assert.equal(await shown(), 12.5);
  assert.match((await run('unset')).out, /7 USD \(from the yaml\)/);
  assert.equal(await shown(), 7);
  assert.deepEqual([(await run('set', '-1')).code, (await run('set')).code, (await run('raise')).code], [2, 2, 2]);
});
