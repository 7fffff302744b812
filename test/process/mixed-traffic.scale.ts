/**
 * Four processes on one database, minutes of mixed traffic, kills of processes and of the database, and a network between
 * them that breaks: then the books agree to the nano-dollar. GATEHOUSE_SCALE_MINUTES is the length (ten).
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock as clock, sleep } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { startEmbedded } from '../../src/storage/embedded.ts';
import { type Answer, type Asking, ask } from '../../src/testing/clients/planned-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { connect, type Row, readDays, readRows } from '../../src/testing/database/rows.ts';
import { MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import {
  type GatewayHome,
  type GatewayProcess,
  gatewayHome,
  launchGateway,
  plannedYaml,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import type { Plan } from '../../src/testing/upstream/planned-upstream.ts';
import { seeded, startUpstream } from './kill-rounds.ts';
import { scaleSize } from './scale-size.ts';

const PROCESSES = 4;
const CLIENTS = 24;
const FAULT_EVERY_MS = 12_000;
const [PROMPT_NANO, COMPLETION_NANO] = [3_000n, 15_000n];

/** Stands between the gateways and PostgreSQL's socket; it can drop every connection, or pass nothing on for a while. */
class FaultProxy {
  readonly folder: string;
  readonly #target: string;
  readonly #sockets = new Set<net.Socket>();
  readonly #server: net.Server;

  constructor(folder: string, socketFolder: string) {
    this.folder = folder;
    this.#target = path.join(socketFolder, '.s.PGSQL.5432');
    this.#server = net.createServer((client) => {
      const server = net.connect(this.#target);
      for (const [one, other] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(one);
        one.on('error', () => other.destroy());
        one.on('close', () => {
          this.#sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    });
  }

  async listen(): Promise<void> {
    mkdirSync(this.folder, { recursive: true });
    await new Promise<void>((resolve) => void this.#server.listen(path.join(this.folder, '.s.PGSQL.5432'), resolve));
  }

  drop(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async silence(ms: number): Promise<void> {
    for (const socket of this.#sockets) socket.pause();
    await sleep(clock, ms);
    for (const socket of this.#sockets) socket.resume();
  }

  close(): void {
    this.#server.close();
    this.drop();
  }
}

test('after mixed traffic, kills and network faults the upstream, the ledger, the days and the budgets agree', async (t) => {
  const minutes = scaleSize('MINUTES', 10);
  const random = seeded(scaleSize('SEED', 7));
  const storage = await gatewayHome(t);
  const server = await startEmbedded({ dataFolder: storage.dataDir, clock, log });
  storage.closers?.push(() => server.stop());
  const proxy = new FaultProxy(path.join(storage.folder, 'proxy'), server.socketFolder);
  await proxy.listen();
  t.after(() => proxy.close());
  const upstream = await startUpstream(t, path.join(storage.folder, 'upstream.log'));
  const env = { DATABASE_URL: `postgresql://postgres@/postgres?host=${encodeURIComponent(proxy.folder)}` };
  const yaml = plannedYaml(upstream.url, { limits: { drain: '60s' } });
  const homes: GatewayHome[] = [];
  const gateways: GatewayProcess[] = [];
  for (let at = 0; at < PROCESSES; at++) {
    homes.push(await gatewayHome(t));
    gateways.push(await startGatewayProcess(t, { home: homes[at]!, yaml, env }));
  }
  const keys = await limitedKeys(gateways[0]!);
  const answers: Answer[] = [];
  let isOver = false;
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let at = 0; !isOver; at++) {
      const gateway = gateways[Math.floor(random() * PROCESSES)]!;
      const answer = oneRequest(gateway, `c${client}-${at}`, keys[client % keys.length]!, random);
      if (answer === undefined) {
        await sleep(clock, 100);
        continue;
      }
      answers.push(answer);
      if (random() < 0.1) void sleep(clock, random() * 300).then(() => answer.leave());
      await until(() => answer.over, `${answer.tag} ends`, 180_000);
    }
  });
  const faults: Record<string, number> = {};
  const startedAt = performance.now();
  while (performance.now() - startedAt < minutes * 60_000) {
    await sleep(clock, FAULT_EVERY_MS);
    const fault = FAULTS[Math.floor(random() * FAULTS.length)]!;
    faults[fault] = (faults[fault] ?? 0) + 1;
    if (fault === 'database killed') process.kill(server.pid, 'SIGKILL');
    else if (fault === 'connections dropped') proxy.drop();
    else if (fault === 'network silent') await proxy.silence(3_000);
    else await replaceOne(t, gateways, Math.floor(random() * PROCESSES), { yaml, env });
  }
  isOver = true;
  await Promise.all(clients);
  for (const gateway of gateways) assert.deepEqual(await gateway.end('SIGTERM'), { code: 0, signal: null });
  await checkBooks(t, { socketFolder: server.socketFolder }, upstream, answers, faults);
});

const FAULTS = ['process killed', 'process killed', 'database killed', 'connections dropped', 'network silent'];

/** Kills one with -9 and starts it again on its data folder; it may need some tries while the database is away. */
async function replaceOne(
  t: TestContext,
  gateways: GatewayProcess[],
  at: number,
  options: { yaml: Record<string, unknown>; env: Record<string, string> },
): Promise<void> {
  const { home } = gateways[at]!;
  await gateways[at]!.end('SIGKILL');
  for (let tries = 0; tries < 20; tries++) {
    const started = await launchGateway(t, { home, ...options });
    const isReady = await started.ready().then(
      () => true,
      () => false,
    );
    if (isReady) {
      gateways[at] = started;
      return;
    }
    await started.end('SIGKILL');
  }
  throw new Error('a process does not start again');
}

/** Keys with budgets that the traffic does not reach, so that every request takes from leases. */
async function limitedKeys(gateway: GatewayProcess): Promise<string[]> {
  const keys: string[] = [];
  for (const [at, reset] of ['daily', 'monthly', undefined].entries()) {
    const body = { name: `scale ${at}`, limit: 1_000, ...(reset && { limit_reset: reset }) };
    const made = await gateway.post('/keys', body, MANAGEMENT_KEY);
    assert.equal(made.status, 201, await made.clone().text());
    keys.push(((await made.json()) as { key: string }).key);
  }
  return keys;
}

const ROUTES = ['/chat/completions', '/messages', '/responses'];

/** Undefined while the process is away. */
function oneRequest(gateway: GatewayProcess, tag: string, key: string, random: () => number): Answer | undefined {
  if (gateway.ended || gateway.lines('listening').length === 0) return undefined;
  const plan: Plan = {
    tag,
    events: 1 + Math.floor(random() * 12),
    gapMs: random() * 40,
    promptTokens: 10 + Math.floor(random() * 5_000),
    completionTokens: 1 + Math.floor(random() * 2_000),
    ...(random() < 0.08 && { cutAfter: Math.floor(random() * 3) }),
    ...(random() < 0.1 && { gzip: true }),
  };
  const route = ROUTES[Math.floor(random() * ROUTES.length)]!;
  const asking: Asking = { key, route, stream: random() < 0.7, body: bodyOf(route, plan) };
  return ask(gateway.url, plan, asking);
}

function bodyOf(route: string, plan: Plan): Record<string, unknown> {
  if (route === '/messages') return { max_tokens: 4_000, user: undefined, metadata: { user_id: plan.tag } };
  if (route === '/responses') return { input: JSON.stringify(plan), messages: undefined };
  return { max_tokens: 4_000 };
}

function shown(row: Row | undefined): string {
  return JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? String(value) : value)) ?? 'no row';
}

async function checkBooks(
  t: TestContext,
  target: { socketFolder: string },
  upstream: Awaited<ReturnType<typeof startUpstream>>,
  answers: readonly Answer[],
  faults: Record<string, number>,
): Promise<void> {
  const rows = await readRows(target);
  const asked = new Set(upstream.entries('asked').map(({ tag }) => tag));
  const byTag = new Map(rows.map((row) => [row.tag, row]));
  assert.equal(byTag.size, rows.length, 'a request has two rows');
  for (const tag of asked) assert.ok(byTag.has(tag), `the upstream saw ${tag}, and there is no row`);
  for (const { tag, input, output, cost } of rows) {
    assert.equal(cost, (input ?? 0n) * PROMPT_NANO + (output ?? 0n) * COMPLETION_NANO, `${tag}: tokens times price`);
  }
  const complete = answers.filter(({ done, text }) => done && text.includes('"finish_reason":"stop"'));
  for (const { tag } of complete) {
    const row = byTag.get(tag);
    assert.ok(row && !row.estimated && !row.unconfirmed, `${tag} was complete: ${shown(row)}`);
  }
  const total = rows.reduce((sum, { cost }) => sum + cost, 0n);
  const days = await readDays(target);
  assert.equal(days.requests, BigInt(rows.length), 'every row is in its day, once');
  assert.equal(days.cost, total, 'the days are the sum of the rows');
  const byKey = new Map<string, bigint>();
  for (const { key, cost } of rows) byKey.set(key, (byKey.get(key) ?? 0n) + cost);
  const client = await connect(target);
  const { rows: windows } = await client.query<{ key: string; spent: bigint; leased: bigint }>(
    `select split_part(id, '/', 2) as key, spent_nano as spent, leased_nano as leased from spend_windows
     where split_part(id, '/', 1) = 'key' and split_part(id, '/', 3) = 'lifetime'`,
  );
  await client.end();
  const spent = new Map(windows.map((window) => [window.key, window.spent]));
  for (const [key, cost] of byKey) assert.equal(spent.get(key), cost, `the budget of ${key} is the sum of its rows`);
  const exact = rows.filter(({ estimated, unconfirmed }) => !estimated && !unconfirmed).length;
  t.diagnostic(
    `${answers.length} requests, ${asked.size} at the upstream, ${complete.length} complete chat streams, ${rows.length} rows (${exact} exact), ${total} nano-dollars, ` +
      `faults: ${JSON.stringify(faults)}`,
  );
}
