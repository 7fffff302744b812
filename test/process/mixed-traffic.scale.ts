/**
 * Four processes on one database, minutes of mixed traffic in every format with batches, tool loops, blocking guardrails and
 * a limit that runs out, kills of processes and of the database, and networks between them that break: then the books agree
 * to the nano-dollar. GATEHOUSE_SCALE_MINUTES is the length (ten), GATEHOUSE_SCALE_SEED the seed.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock as clock, sleep } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { startEmbedded } from '../../src/storage/embedded.ts';
import {
  type GatewayHome,
  type GatewayProcess,
  gatewayHome,
  launchGateway,
  plannedYaml,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import { seeded, startUpstream } from './kill-rounds.ts';
import { checkBooks } from './mixed-traffic/books.ts';
import { FaultProxy, Spreader } from './mixed-traffic/fault-proxy.ts';
import { EMBEDDING_MODEL, FORM_NAMES, makeKeys, Traffic } from './mixed-traffic/traffic.ts';
import { scaleSize } from './scale-size.ts';

const PROCESSES = 4;
const CLIENTS = 24;
const FAULT_EVERY_MS = 8_000;
const POSTGRES_SOCKET = '.s.PGSQL.5432';

/** A gateway with its own network to the database, and what it was started with. */
interface Member {
  gateway: GatewayProcess;
  network: FaultProxy;
  options: { home: GatewayHome; env: Record<string, string>; yaml: Record<string, unknown> };
}

test('after mixed traffic, kills and network faults the upstream, the ledger, the days and the budgets agree', async (t) => {
  const minutes = scaleSize('MINUTES', 10);
  const random = seeded(scaleSize('SEED', 7));
  const storage = await gatewayHome(t);
  const server = await startEmbedded({ dataFolder: storage.dataDir, clock, log });
  storage.closers?.push(() => server.stop());
  const upstream = await startUpstream(t, path.join(storage.folder, 'upstream.log'));
  const upstreamNetwork = await new FaultProxy(addressOf(upstream.url)).listen();
  t.after(() => upstreamNetwork.close());
  const members: Member[] = [];
  for (let at = 0; at < PROCESSES; at++) {
    members.push(await startMember(t, path.join(server.socketFolder, POSTGRES_SOCKET), upstreamNetwork.url));
  }
  const spreader = await new Spreader(() => members.map(({ gateway }) => portOf(gateway))).listen();
  t.after(() => spreader.close());

  const traffic = new Traffic(spreader.url, await makeKeys(members[0]!.gateway), random);
  let isOver = false;
  const working = [
    ...Array.from({ length: CLIENTS }, (_, client) => traffic.client(`c${client}`, () => isOver)),
    traffic.submitter(() => isOver),
  ];
  const failed = Promise.all(working);
  const faults: Record<string, number> = {};
  const startedAt = performance.now();
  while (performance.now() - startedAt < minutes * 60_000) {
    await Promise.race([sleep(clock, FAULT_EVERY_MS), failed]);
    const fault = FAULTS[Math.floor(random() * FAULTS.length)]!;
    faults[fault] = (faults[fault] ?? 0) + 1;
    const member = members[Math.floor(random() * PROCESSES)]!;
    const networks = random() < 0.5 ? [member.network] : members.map(({ network }) => network);
    if (fault === 'database killed') process.kill(server.pid, 'SIGKILL');
    else if (fault === 'process killed') await replace(t, member);
    else if (fault === 'upstream cut') upstreamNetwork.cut();
    else if (fault === 'upstream delayed') await upstreamNetwork.delay(400, 3_000);
    else if (fault === 'database cut') for (const network of networks) network.cut();
    else if (fault === 'database delayed') await Promise.all(networks.map((network) => network.delay(300, 3_000)));
    else await Promise.all(networks.map((network) => network.blackHole(3_000)));
  }
  isOver = true;
  await failed;
  const failedItems = await traffic.endOfBatches(members[0]!.gateway);
  for (const { gateway } of members) assert.deepEqual(await gateway.end('SIGTERM'), { code: 0, signal: null });

  const figures = await checkBooks({ socketFolder: server.socketFolder }, upstream, traffic);
  const forms = Map.groupBy(traffic.complete, (tag) => traffic.sent.get(tag)!.form);
  for (const name of FORM_NAMES) assert.ok(forms.has(name), `no answer in the format ${name} was complete`);
  const complete = Object.fromEntries([...forms].map(([name, tags]) => [name, tags.length]));
  const batches = { batches: traffic.batches.size, failedItems };
  t.diagnostic(JSON.stringify({ ...figures, complete, ...batches, faults }));
});

const FAULTS = [
  ...['process killed', 'process killed', 'database killed'],
  ...['database cut', 'database silent', 'database delayed', 'upstream cut', 'upstream delayed'],
];

function addressOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

/** Nothing listens on port 1 while a gateway starts. */
function portOf(gateway: GatewayProcess): number {
  return gateway.lines('listening').length === 0 ? 1 : addressOf(gateway.url).port;
}

async function startMember(t: TestContext, databaseSocket: string, upstreamUrl: string): Promise<Member> {
  const home = await gatewayHome(t);
  const folder = path.join(home.folder, 'network');
  const network = await new FaultProxy({ path: databaseSocket }).listen(path.join(folder, POSTGRES_SOCKET));
  t.after(() => network.close());
  const yaml = plannedYaml(upstreamUrl, { limits: { drain: '60s' } });
  const [planned] = yaml['providers'] as { id: string; models: object[] }[];
  const vectors = {
    ...{ ...planned, id: 'vectors', name: 'Vectors', kind: 'openai', batches: false },
    models: [{ ...planned!.models[0], id: EMBEDDING_MODEL, output_modalities: ['embeddings'] }],
  };
  const env = { DATABASE_URL: `postgresql://postgres@/postgres?host=${encodeURIComponent(folder)}` };
  const options = { home, env, yaml: { ...yaml, providers: [planned, vectors] } };
  return { gateway: await startGatewayProcess(t, options), network, options };
}

/** Kills one with -9 and starts it again on its data folder; it may need some tries while the database is away. */
async function replace(t: TestContext, member: Member): Promise<void> {
  await member.gateway.end('SIGKILL');
  for (let tries = 0; tries < 20; tries++) {
    const started = await launchGateway(t, member.options);
    const isReady = await started.ready().then(
      () => true,
      () => false,
    );
    if (isReady) {
      member.gateway = started;
      return;
    }
    await started.end('SIGKILL');
  }
  throw new Error('a process does not start again');
}
