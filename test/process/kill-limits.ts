/**
 * Hard limits under kill -9: requests of several keys run, the gateway is killed, started again on the same data folder,
 * and what the upstream was asked for, which it may all have served, is compared with every limit.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { type Answer, ask } from '../../src/testing/clients/planned-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import {
  type GatewayProcess,
  gatewayHome,
  plannedYaml,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import type { Plan } from '../../src/testing/upstream/planned-upstream.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { type Rounds, seeded, startUpstream } from './kill-rounds.ts';

/** One token of the answer costs this; the prompt is free, so that a row of a killed request says nothing of its cost. */
const USD_PER_TOKEN = 0.001;
const REQUESTS = 25;

interface Limit {
  name: string;
  usd: number;
  /** Names of the keys whose spend counts. */
  keys: readonly string[];
}

const ACCOUNT = 2;
const LIMITS: readonly Limit[] = [
  { name: 'account balance', usd: ACCOUNT, keys: ['limited', 'team', 'guarded', 'free'] },
  { name: 'budget of the workspace', usd: 1.2, keys: ['limited', 'team'] },
  { name: 'limit of the key', usd: 1, keys: ['limited'] },
  { name: 'guardrail of the key', usd: 0.5, keys: ['guarded'] },
  { name: 'guardrail of the member', usd: 1.5, keys: ['limited', 'team', 'free'] },
];

const HOLDS: readonly Plan['hold'][] = ['head', 'body', 1, 2, undefined];

export interface LimitCounts {
  rounds: number;
  served: Record<string, number>;
  refused: number;
  unreturned: number;
}

/** Runs the rounds; throws when an upstream may have served more than a limit allows. */
export async function killWithinLimits(t: TestContext, { rounds, seed, workers = 1 }: Rounds): Promise<LimitCounts> {
  const home = await gatewayHome(t);
  const upstream = await startUpstream(t, path.join(home.folder, 'upstream.log'));
  const pricing = { prompt: '0', completion: String(USD_PER_TOKEN) };
  const yaml = plannedYaml(upstream.url, { account: { balance_usd: ACCOUNT }, model: { pricing } });
  const options = { home, yaml, env: { GATEHOUSE_WORKERS: String(workers) } };
  let gateway = await startGatewayProcess(t, options);
  const keys = await makeKeys(gateway);
  const random = seeded(seed);
  /** By tag: the key, and the most that the request may cost. */
  const sent = new Map<string, { key: string; usd: number }>();
  const all: Answer[] = [];
  const served = (names: readonly string[]) => {
    const asked = upstream.entries('asked').map(({ tag }) => sent.get(tag)!);
    const sum = asked.filter(({ key }) => names.includes(key)).reduce((total, { usd }) => total + usd, 0);
    return Math.round(sum * 1e9) / 1e9;
  };
  for (let round = 0; round < rounds; round++) {
    const before = upstream.entries('asked').length;
    const answers = Array.from({ length: REQUESTS }, (_, at) => {
      const name = [...keys.keys()][Math.floor(random() * keys.size)]!;
      const tokens = 1 + Math.floor(random() * 60);
      const tag = `r${round}-${at}`;
      sent.set(tag, { key: name, usd: tokens * USD_PER_TOKEN });
      const hold = HOLDS[Math.floor(random() * HOLDS.length)];
      const plan = { tag, events: 3, text: 'x', completionTokens: tokens, ...(hold !== undefined && { hold }) };
      return ask(gateway.url, plan, { stream: random() < 0.5, key: keys.get(name)!, body: { max_tokens: tokens } });
    });
    all.push(...answers);
    const wanted = Math.floor(random() * REQUESTS);
    await until(() => {
      const asked = upstream.entries('asked').length - before;
      const refused = answers.filter(({ status }) => status >= 400).length;
      return asked >= wanted || asked + refused >= REQUESTS;
    }, 'requests run');
    await gateway.end('SIGKILL');
    upstream.release();
    await until(() => all.every(({ over }) => over), 'every client has lost its connection');
    gateway = await startGatewayProcess(t, options);
    for (const limit of LIMITS) {
      const sum = served(limit.keys);
      assert.ok(sum <= limit.usd, `round ${round}: the upstream served ${sum} of ${limit.usd} USD: ${limit.name}`);
    }
    await checkBooks(gateway, keys, served);
  }
  const counts = {
    rounds,
    served: Object.fromEntries(LIMITS.map(({ name, keys: names }) => [name, served(names)])),
    refused: all.filter(({ status }) => status === 402).length,
    unreturned: await unreturnedOf(gateway),
  };
  assert.deepEqual(await gateway.end('SIGTERM'), { code: 0, signal: null });
  return counts;
}

async function makeKeys(gateway: GatewayProcess): Promise<Map<string, string>> {
  const { call, made, keyIn } = controlOf(gateway);
  const ok = async (answer: Promise<{ status: number; body: Json }>) => {
    const { status, body } = await answer;
    assert.ok(status < 300, JSON.stringify(body));
    return body.data;
  };
  const [, workspace, key, guardrail, member] = LIMITS.map(({ usd }) => usd);
  const { id } = await made({ name: 'team', slug: 'team' });
  await ok(call('PUT', '/workspaces/team/budgets/lifetime', { limit_usd: workspace }));
  const limited = await keyIn(id, 'limited', { limit: key });
  const keys = {
    limited,
    team: await keyIn(id, 'team'),
    guarded: await keyIn(undefined, 'guarded'),
    free: await keyIn(undefined, 'free'),
  };
  const guard = async (limit_usd: number, what: string, body: Json) => {
    const { id: made } = await ok(call('POST', '/guardrails', { name: what, limit_usd, reset_interval: 'monthly' }));
    await ok(call('POST', `/guardrails/${made}/assignments/${what}`, body));
  };
  await guard(guardrail!, 'keys', { key_hashes: [keys.guarded.hash] });
  const { creator_user_id: creator } = await ok(call('GET', `/keys/${keys.free.hash}`));
  await guard(member!, 'members', { member_user_ids: [creator] });
  return new Map(Object.entries(keys).map(([name, { token }]) => [name, token]));
}

/** What a key's own limit shows as spent or held covers what its upstream may have served. */
async function checkBooks(
  gateway: GatewayProcess,
  keys: ReadonlyMap<string, string>,
  served: (names: readonly string[]) => number,
): Promise<void> {
  const { data } = (await (await gateway.get('/budget', keys.get('limited')!)).json()) as { data: Json[] };
  const own = data.find(({ scope }) => scope === 'key');
  const known = own.spent_usd + own.reserved_usd;
  assert.ok(known >= served(['limited']) - 1e-9, `${known} of ${served(['limited'])} USD are known`);
  assert.ok(own.unreturned_usd <= own.reserved_usd);
}

async function unreturnedOf(gateway: GatewayProcess): Promise<number> {
  const { data } = (await (await gateway.get('/budget')).json()) as { data: Json[] };
  return data.find(({ scope }) => scope === 'account').unreturned_usd;
}
