/** Ten thousand streams are open in one process, and its memory stays flat while they run. GATEHOUSE_SCALE_STREAMS changes the number. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { systemClock as clock, sleep } from '../../src/base/clock.ts';
import { type Answer, ask } from '../../src/testing/clients/planned-client.ts';
import { embeddedTarget, rowsOnce } from '../../src/testing/database/rows.ts';
import { gatewayHome, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { descendantsOf } from '../../src/testing/process/process.ts';
import { startUpstream } from './kill-rounds.ts';
import { scaleSize } from './scale-size.ts';

/** A process has at most 4,096 connections to one upstream. */
const UPSTREAMS = 3;
const EVENTS = 12;
const GAP_MS = 3_000;
/** Connections that are opened at once. */
const BURST = 200;
/** Descriptors of the gateway beside two for each stream. */
const SPARE_DESCRIPTORS = 400;

test('memory stays flat with thousands of open streams, each of which is complete and has its row', {
  skip: process.platform !== 'linux' && 'reads /proc',
}, async (t) => {
  const limit = Number(spawnSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).stdout);
  const wanted = scaleSize('STREAMS', 10_000);
  const count = Number.isNaN(limit) ? wanted : Math.min(wanted, Math.floor((limit - SPARE_DESCRIPTORS) / 2));
  const home = await gatewayHome(t);
  const upstreams: Awaited<ReturnType<typeof startUpstream>>[] = [];
  for (let at = 0; at < UPSTREAMS; at++)
    upstreams.push(await startUpstream(t, path.join(home.folder, `upstream-${at}.log`)));
  const release = () => {
    for (const upstream of upstreams) upstream.release();
  };
  const timeouts = { first_byte: '300s', idle: '300s', total: '3600s' };
  const providers = upstreams.flatMap(
    ({ url }, at) =>
      plannedYaml(url, {
        provider: { id: `planned-${at}`, max_concurrency: count, timeouts },
        model: { id: `test/planned-${at}` },
      })['providers'] as object[],
  );
  const gateway = await startGatewayProcess(t, { home, yaml: { providers } });
  const memory = () => memoryMb([gateway.pid, ...descendantsOf(gateway.pid)]);
  const idle = memory();
  const answers: Answer[] = [];
  const eventsOf = ({ text }: Answer) => text.split('data: {').length - 1;
  const allHave = async (events: number) => {
    while (answers.some((answer) => eventsOf(answer) < events)) {
      const broken = answers.find(({ over, done, status }) => (over && !done) || status > 200);
      assert.ok(broken === undefined, `${broken?.tag} broke: ${broken?.status} ${broken?.text}`);
      await sleep(clock, 500);
      // A stream that its client has seen may be held only afterwards.
      if (events > 1) release();
    }
  };
  while (answers.length < count) {
    for (let more = Math.min(BURST, count - answers.length); more > 0; more -= 1) {
      const plan = { tag: `open-${answers.length}`, events: EVENTS, gapMs: GAP_MS, hold: 1 };
      const model = `test/planned-${answers.length % UPSTREAMS}`;
      answers.push(ask(gateway.url, plan, { body: { model } }));
    }
    await allHave(1);
  }
  const opened = memory();
  release();
  const samples: number[] = [];
  for (let events = 2; events <= EVENTS; events += 2) {
    await allHave(events);
    samples.push(memory());
  }
  while (answers.some(({ over }) => !over)) await sleep(clock, 500);
  for (const { tag, done, complete } of answers) assert.ok(done && complete, tag);
  const text = samples.map(Math.round).join(', ');
  t.diagnostic(`${count} streams: ${Math.round(idle)} MB idle, ${Math.round(opened)} MB open, then ${text} MB`);
  assert.ok(samples.at(-1)! < samples[0]! * 1.2, `memory grows: ${text} MB`);
  assert.equal((await rowsOnce(embeddedTarget(home), count)).length, count);
});

/** Proportional set size without the database. */
function memoryMb(pids: readonly number[]): number {
  let kilobytes = 0;
  for (const pid of pids) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('postgres')) continue;
      const [, pss] = /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? [];
      kilobytes += Number(pss ?? 0);
    } catch {
      // It has ended.
    }
  }
  return kilobytes / 1024;
}
