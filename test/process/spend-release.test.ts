/** Listing and releasing what lost processes hold of limits with the command line. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ask } from '../../src/testing/clients/planned-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { connect, embeddedTarget } from '../../src/testing/database/rows.ts';
import { runCommand } from '../../src/testing/process/command.ts';
import { type GatewayHome, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const PRICING = { prompt: '0', completion: '0.001' };

async function done(home: GatewayHome, args: readonly string[]): Promise<string> {
  const { code, out, err } = await runCommand(home, args);
  assert.equal(code, 0, err);
  return out;
}

const listed = async (home: GatewayHome): Promise<Json[]> =>
  JSON.parse(await done(home, ['spend', 'processes', '--json'])).processes;

const doctorOf = async (home: GatewayHome): Promise<Json[]> => {
  const { out } = await runCommand(home, ['doctor', '--offline', '--json']);
  return JSON.parse(out).findings.filter(({ area }: Json) => area === 'budgets');
};

test('the bound of a request that was open at a kill is unreturned, the doctor names it, and one command frees it', async (t) => {
  const upstream = await new PlannedUpstream().listen();
  t.after(() => upstream.close());
  const yaml = plannedYaml(upstream.url, { model: { pricing: PRICING } });
  let gateway = await startGatewayProcess(t, { yaml });
  const { home } = gateway;
  const { token } = await controlOf(gateway).keyIn(undefined, 'limited', { limit: 1 });
  const most = (tag: string, tokens: number, more = {}) =>
    ask(gateway.url, { tag, completionTokens: tokens, ...more }, { key: token, body: { max_tokens: tokens } });
  const open = [most('a', 300, { hold: 'head' }), most('b', 600, { hold: 1, text: 'seen' })];
  await until(() => upstream.tags('asked').size === 2 && open[1]!.text.includes('seen'), 'both run');
  await gateway.end('SIGKILL');
  upstream.release();
  gateway = await startGatewayProcess(t, { home, yaml });
  const budget = async (): Promise<Json> => {
    const { data } = (await (await gateway.get('/budget', token)).json()) as Json;
    return data.find(({ scope }: Json) => scope === 'key');
  };
  const state = await budget();
  // Of the second one, a token was seen.
  assert.deepEqual([state.spent_usd, state.unreturned_usd], [0.001, 0.899]);
  const refused = most('c', 200);
  await until(() => refused.over, 'the answer');
  assert.equal(refused.status, 402);
  const lost = (await listed(home)).filter(({ state: is }) => is === 'replayed');
  assert.deepEqual(
    lost.map(({ open_requests, holds }) => [
      open_requests,
      holds.map(({ scope, held_usd }: Json) => [scope, held_usd]),
    ]),
    [[2, [['key', 0.899]]]],
  );
  const [finding] = await doctorOf(home);
  assert.match(finding.message, /died with 2 open requests.* holds 0\.899 USD of the lifetime budget of key/);
  assert.equal(finding.advice, `gatehouse spend release ${lost[0].id}`);
  assert.match(await done(home, ['spend', 'processes']), new RegExp(`${lost[0].id}  replayed  .*2 open requests`));
  assert.match(await done(home, ['spend', 'release', lost[0].id]), /released .*\n.*0\.899 USD of the lifetime budget/);
  assert.equal((await budget()).unreturned_usd, 0);
  const again = most('d', 200);
  await until(() => again.over, 'the answer');
  assert.equal(again.status, 200);
  const { body } = await controlOf(gateway).call('GET', '/audit?action=process.released');
  assert.equal(body.data[0].resource_id, lost[0].id);
  const twice = await runCommand(home, ['spend', 'release', lost[0].id]);
  assert.deepEqual([twice.code, twice.err.includes('holds no lease')], [1, true]);
});

test('what processes hold that died with their disks is released by one command, once they were silent for long enough', async (t) => {
  const upstream = await new PlannedUpstream().listen();
  t.after(() => upstream.close());
  const yaml = plannedYaml(upstream.url, { model: { pricing: PRICING }, limits: { unreturned_after: '1h' } });
  let gateway = await startGatewayProcess(t, { yaml });
  const { home } = gateway;
  const { token } = await controlOf(gateway).keyIn(undefined, 'limited', { limit: 10 });
  for (let round = 0; round < 2; round++) {
    for (let n = 0; n < 10; n++) {
      const one = ask(
        gateway.url,
        { tag: `${round}-${n}`, completionTokens: 10 },
        { key: token, body: { max_tokens: 10 } },
      );
      await until(() => one.over, 'the answer');
      assert.equal(one.status, 200);
    }
    await gateway.end('SIGKILL');
    rmSync(path.join(home.dataDir, 'journal'), { recursive: true });
    gateway = await startGatewayProcess(t, { home, yaml });
  }
  const gone = async (after: string) => {
    const client = await connect(embeddedTarget(home));
    await client.query(`update spend_processes set seen_at = now() - interval '${after}' where id <> $1`, [
      (await listed(home)).at(-1).id,
    ]);
    await client.end();
  };
  await gone('30 minutes');
  const lost = (await listed(home)).filter(({ state }) => state === 'gone');
  assert.equal(lost.length, 2);
  // Each had leased what a few further requests would have cost.
  for (const { holds } of lost) assert.ok(holds[0].held_usd <= 0.15, `${holds[0].held_usd} USD are lost`);
  assert.deepEqual(await doctorOf(home), []);
  assert.match(await done(home, ['spend', 'release', '--all']), /no process needs to be released/);
  await gone('61 minutes');
  assert.equal((await doctorOf(home)).length, 2);
  const out = await done(home, ['spend', 'release', '--all']);
  for (const { id } of lost) assert.ok(out.includes(`released ${id}`), out);
  assert.deepEqual(
    (await listed(home)).map(({ state }) => state),
    ['live'],
  );
  const wrong = await runCommand(home, ['spend', 'release']);
  assert.equal(wrong.code, 2);
  const live = await runCommand(home, ['spend', 'release', (await listed(home))[0].id]);
  assert.equal(live.code, 1);
});
