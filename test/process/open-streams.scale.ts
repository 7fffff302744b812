/**
 * Ten thousand streams are open in one process, and its memory stays flat while they run. GATEHOUSE_SCALE_STREAMS changes the
 * number. Where the limit of descriptors does not allow two for each, so many as necessary follow background responses, which
 * takes one.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { systemClock as clock, sleep } from '../../src/base/clock.ts';
import { type Answer, ask } from '../../src/testing/clients/planned-client.ts';
import { embeddedTarget, rowsOnce } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { gatewayHome, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { descendantsOf } from '../../src/testing/process/process.ts';
import type { Plan } from '../../src/testing/upstream/planned-upstream.ts';
import { startUpstream } from './kill-rounds.ts';
import { scaleSize } from './scale-size.ts';

/** A process has at most 4,096 connections to one upstream. */
const UPSTREAMS = 3;
const EVENTS = 12;
const GAP_MS = 3_000;
/** Connections that are opened at once. */
const BURST = 200;
/** Descriptors that the gateway needs for anything but the streams. */
const SPARE_DESCRIPTORS = 400;
const FOLLOWERS_OF_ONE = 100;

test('memory stays flat with thousands of open streams, each of which is complete and has its row', {
  skip: process.platform !== 'linux' && 'reads /proc',
}, async (t) => {
  const limit = Number(spawnSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).stdout);
  const count = scaleSize('STREAMS', 10_000);
  const following = Number.isNaN(limit) ? 0 : Math.max(0, 2 * count + SPARE_DESCRIPTORS - limit);
  const relayed = count - following;
  assert.ok(relayed >= 0, `${limit} descriptors are too few for ${count} streams`);
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
  const answers: Stream[] = [];
  const eventsOf = ({ text }: Stream) => text.split(text.startsWith('event:') ? DELTA : 'data: {').length - 1;
  const allHave = async (events: number) => {
    while (answers.some((answer) => eventsOf(answer) < events)) {
      const broken = answers.find(({ over, done, status }) => (over && !done) || status > 200);
      assert.ok(broken === undefined, `${broken?.tag} broke: ${broken?.status} ${broken?.text}`);
      await sleep(clock, 500);
      // A stream that its client has seen may be held only afterwards.
      if (events > 1) release();
    }
  };
  const planOf = (tag: string) => ({ tag, events: EVENTS, gapMs: GAP_MS, hold: 1 });
  while (answers.length < relayed) {
    for (let more = Math.min(BURST, relayed - answers.length); more > 0; more -= 1) {
      const model = `test/planned-${answers.length % UPSTREAMS}`;
      answers.push(ask(gateway.url, planOf(`open-${answers.length}`), { body: { model } }));
    }
    await allHave(1);
  }
  let running = 0;
  while (answers.length < count) {
    const started = inBackground(gateway.url, planOf(`followed-${running}`));
    running += 1;
    answers.push(started);
    await allHave(1);
    const [, id] = /"id":"(resp_[^"]+)"/.exec(started.text)!;
    for (let more = Math.min(FOLLOWERS_OF_ONE, count - answers.length); more > 0; more -= 1)
      answers.push(new BackgroundStream(`${gateway.url}/api/v1/responses/${id}?stream=true`));
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
  t.diagnostic(
    `${count} streams, ${following} of them of background responses: ${Math.round(idle)} MB idle, ${Math.round(opened)} MB open, then ${text} MB`,
  );
  const rows = relayed + running;
  assert.ok(samples.at(-1)! < samples[0]! * 1.2, `memory grows: ${text} MB`);
  assert.equal((await rowsOnce(embeddedTarget(home), rows)).length, rows);
});

type Stream = Pick<Answer, 'tag' | 'text' | 'status' | 'over' | 'done' | 'complete'>;

const DELTA = 'event: response.output_text.delta';
const HEADERS = { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' };

function inBackground(url: string, plan: Plan): BackgroundStream {
  const body = { model: 'test/planned-0', background: true, store: true, stream: true, input: JSON.stringify(plan) };
  return new BackgroundStream(`${url}/api/v1/responses`, body);
}

/** The stream of a background response, from the request that starts it or from one that follows. */
class BackgroundStream implements Stream {
  readonly tag: string;
  status = 0;
  text = '';
  over = false;
  complete = false;

  constructor(url: string, body?: object) {
    this.tag = url;
    const request = http.request(url, { method: body ? 'POST' : 'GET', agent: false, headers: HEADERS });
    request.on('response', (response) => {
      this.status = response.statusCode ?? 0;
      response.setEncoding('utf8').on('data', (text: string) => {
        this.text += text;
      });
      response.on('end', () => {
        this.complete = response.complete;
      });
    });
    request.on('error', (error) => {
      this.text += String(error);
    });
    request.on('close', () => {
      this.over = true;
    });
    request.end(body && JSON.stringify(body));
  }

  get done(): boolean {
    return this.text.includes('event: response.completed');
  }
}

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
