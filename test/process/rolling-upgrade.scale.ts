/** A process of the next version takes over from one of this version on the same database, and no request is lost. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { systemClock as clock, sleep } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { startEmbedded } from '../../src/storage/embedded.ts';
import { type Answer, ask } from '../../src/testing/clients/planned-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { connect, readDays, rowsOnce } from '../../src/testing/database/rows.ts';
import {
  type GatewayProcess,
  gatewayHome,
  plannedYaml,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import { PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';
import { ROOT } from '../rules/source-files.ts';
import { NEXT_MIGRATION } from './next-migration.ts';

const NEXT_VERSION = [
  process.execPath,
  ...['--import', path.join(import.meta.dirname, 'newer-version.ts')],
  ...[path.join(ROOT, 'src/main.ts'), 'serve'],
];
const STREAMS = 20;
const CLIENTS = 6;

/** A load balancer: it asks every process whether it is ready, and passes requests to those that are, in turn. */
class Balancer {
  readonly #processes: GatewayProcess[] = [];
  readonly #ready = new Set<GatewayProcess>();
  #turn = 0;
  #watching = true;

  async add(process: GatewayProcess): Promise<void> {
    this.#processes.push(process);
    void this.#watch(process);
    await until(() => this.#ready.has(process), 'the balancer sees a process');
  }

  next(): GatewayProcess {
    const able = this.#processes.filter((process) => this.#ready.has(process));
    assert.ok(able.length > 0, 'no process is ready');
    return able[this.#turn++ % able.length]!;
  }

  has(process: GatewayProcess): boolean {
    return this.#ready.has(process);
  }

  close(): void {
    this.#watching = false;
  }

  async #watch(process: GatewayProcess): Promise<void> {
    while (this.#watching) {
      const status = await fetch(`${process.url}/ready`).then(
        (answer) => answer.status,
        () => 0,
      );
      if (status === 200) this.#ready.add(process);
      else this.#ready.delete(process);
      if (status === 0) return;
      await sleep(clock, 50);
    }
  }
}

test('a rolling upgrade to a newer schema loses no request, no stream and no row', async (t) => {
  const [storage, oldHome, newHome] = [await gatewayHome(t), await gatewayHome(t), await gatewayHome(t)];
  const server = await startEmbedded({ dataFolder: storage.dataDir, clock, log });
  storage.closers?.push(() => server.stop());
  const upstream = await new PlannedUpstream().listen();
  t.after(() => upstream.close());
  const target = { socketFolder: server.socketFolder };
  const env = { DATABASE_URL: `postgresql://postgres@/postgres?host=${encodeURIComponent(server.socketFolder)}` };
  const yaml = plannedYaml(upstream.url, { limits: { drain_delay: '1s', drain: '60s' } });

  const before = await startGatewayProcess(t, { home: oldHome, yaml, env });
  const balancer = new Balancer();
  t.after(() => balancer.close());
  await balancer.add(before);
  const all: Answer[] = [];
  const send = (gateway: GatewayProcess, plan: Parameters<typeof ask>[1]) => {
    const answer = ask(gateway.url, { promptTokens: 100, completionTokens: 10, ...plan });
    all.push(answer);
    return answer;
  };
  const streams = Array.from({ length: STREAMS }, (_, at) => send(before, { tag: `stream-${at}`, events: 6, hold: 3 }));
  await until(() => streams.every(({ events }) => events.length >= 3), 'streams are half way');

  // Clients that send one request after the other for as long as the upgrade takes.
  let isOver = false;
  let isReplaced = false;
  const [shared, alone] = [new Set<string>(), new Set<string>()];
  const pump = async (client: number) => {
    for (let at = 0; !isOver; at++) {
      const gateway = balancer.next();
      const answer = send(gateway, { tag: `client-${client}-${at}` });
      await until(() => answer.over, 'an answer ends', 60_000);
      if (gateway === before && isReplaced) shared.add(answer.tag);
      if (gateway !== before) alone.add(answer.tag);
    }
  };
  const pumps = Array.from({ length: CLIENTS }, (_, client) => pump(client));

  const after = await startGatewayProcess(t, { home: newHome, yaml, env, command: NEXT_VERSION });
  isReplaced = true;
  await balancer.add(after);
  await until(() => shared.size >= 10 && alone.size >= 10, 'both versions serve on the newer schema');
  before.signal('SIGTERM');
  await until(() => !balancer.has(before), 'the balancer sees that the old process stops');
  upstream.release();
  assert.deepEqual(await before.exit, { code: 0, signal: null });
  const served = alone.size;
  await until(() => alone.size > served + 10, 'the new version serves alone');
  isOver = true;
  await Promise.all(pumps);

  for (const answer of all) {
    assert.equal(answer.status, 200, `${answer.tag}: ${answer.text}`);
    assert.ok(answer.done && answer.complete, `${answer.tag} is not complete`);
  }
  assert.deepEqual(await after.end('SIGTERM'), { code: 0, signal: null });
  const rows = await rowsOnce(target, all.length);
  assert.deepEqual(rows.map(({ tag }) => tag).toSorted(), all.map(({ tag }) => tag).toSorted());
  for (const row of rows) assert.deepEqual([row.input, row.output, row.estimated], [100n, 10n, false], row.tag);
  const days = await readDays(target);
  assert.equal(days.requests, BigInt(rows.length));
  assert.equal(
    days.cost,
    rows.reduce((sum, { cost }) => sum + cost, 0n),
  );
  const client = await connect(target);
  const { rows: ran } = await client.query('select 1 from migrations where name = $1', [NEXT_MIGRATION.name]);
  await client.end();
  assert.equal(ran.length, 1);
});
