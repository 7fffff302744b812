/**
 * `node bench/batch.mjs`: what a batch that runs meanwhile costs interactive requests. Each round measures the latency of
 * 1 KB requests at a fixed rate twice, without a batch and with one, in alternating order; the median of the ratios is shown.
 *
 *   node bench/batch.mjs [--rounds N] [--seconds S] [--rate N] [--items N] [--warmup S]
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { requestBody } from './bodies.mjs';
import { startGateway } from './subjects.mjs';
import { BenchError, build, freePort, LOAD_CORE, listening, median, runProgram, start, stopAll } from './tools.mjs';

const run = promisify(execFile);

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '5' },
    rate: { type: 'string', default: '200' },
    items: { type: 'string', default: '50000' },
    warmup: { type: 'string', default: '10' },
  },
});

async function main() {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-bench-'));
  try {
    build(folder);
    const upstreamPort = await freePort();
    const mock = start(LOAD_CORE, path.join(folder, 'mock'), [upstreamPort, 1000, 250, 270, 5000].map(String));
    await listening(upstreamPort, mock, 'the mock upstream');
    const gateway = await startGateway(folder, upstreamPort);
    writeFileSync(path.join(folder, 'body.json'), requestBody(gateway, 'chat', { bytes: 1000 }));
    await load(folder, gateway, ['32', options.warmup]);
    const rounds = [];
    for (let round = 0; round < Number(options.rounds); round++) {
      rounds.push(round % 2 === 0 ? await bothWays(folder, gateway) : await bothWays(folder, gateway, true));
    }
    const alone = await aloneRate(gateway);
    for (const [name, of] of [
      ['without a batch', 'without'],
      ['with a batch', 'during'],
    ]) {
      const figures = rounds.map((round) => round[of]);
      console.log(
        `${name}: p50/p99 ${medianOf(figures, 'p50')}/${medianOf(figures, 'p99')} us at ${options.rate} requests/s`,
      );
    }
    const ratios = rounds.map(({ without, during }) => ({
      p50: during.p50 / without.p50,
      p99: during.p99 / without.p99,
    }));
    console.log(
      `ratio, median of ${rounds.length}: p50 ${medianOf(ratios, 'p50').toFixed(2)}x, p99 ${medianOf(ratios, 'p99').toFixed(2)}x`,
    );
    console.log(`p50 of each round: ${ratios.map(({ p50 }) => p50.toFixed(2)).join(' ')}`);
    console.log(
      `items/s: ${Math.round(medianOf(rounds, 'items'))} meanwhile, ${Math.round(alone)} without other requests`,
    );
  } finally {
    await stopAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function bothWays(folder, gateway, batchFirst = false) {
  const shape = ['32', options.seconds, `rate=${options.rate}`];
  const withoutBatch = () => load(folder, gateway, shape);
  let without;
  if (!batchFirst) without = await withoutBatch();
  const id = await submit(gateway);
  // Until the pace of items has settled.
  await load(folder, gateway, ['32', '3', `rate=${options.rate}`]);
  const [before, startedAt] = [await completed(gateway, id), performance.now()];
  const during = await load(folder, gateway, shape);
  const items = ((await completed(gateway, id)) - before) / ((performance.now() - startedAt) / 1000);
  await cancel(gateway, id);
  if (batchFirst) without = await withoutBatch();
  return { without, during, items };
}

/** Items a second while nothing else happens. */
async function aloneRate(gateway) {
  const id = await submit(gateway);
  await sleep(2000);
  const [before, startedAt] = [await completed(gateway, id), performance.now()];
  await sleep(5000);
  const rate = ((await completed(gateway, id)) - before) / ((performance.now() - startedAt) / 1000);
  await cancel(gateway, id);
  return rate;
}

async function submit(gateway) {
  const { model, messages, max_tokens } = JSON.parse(requestBody(gateway, 'chat', { bytes: 1000 }));
  const requests = Array.from({ length: Number(options.items) }, (_, n) => ({
    custom_id: `item-${n}`,
    body: { messages, max_tokens },
  }));
  const { id, error } = await call(gateway, 'POST', '/batches', { endpoint: '/v1/chat/completions', model, requests });
  if (id === undefined) throw new BenchError(`the batch was refused: ${JSON.stringify(error)}`);
  return id;
}

async function completed(gateway, id) {
  const { status, request_counts: counts } = await call(gateway, 'GET', `/batches?limit=1`).then(({ data }) => data[0]);
  if (status === 'completed') throw new BenchError(`the batch ${id} was over too early: it needs more --items`);
  return counts.completed;
}

async function cancel(gateway, id) {
  await call(gateway, 'POST', `/batches/${id}/cancel`);
  for (;;) {
    const { data } = await call(gateway, 'GET', '/batches?limit=1');
    if (data[0].status === 'completed')
      throw new BenchError(`the batch ${id} was over too early: it needs more --items`);
    if (data[0].status === 'cancelled') return;
    await sleep(100);
  }
}

async function call({ port, headers }, method, route, body) {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1${route}`, {
    method,
    headers: { ...Object.fromEntries(headers.map((line) => line.split(': '))), 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return response.json();
}

async function load(folder, { port, headers, forms }, [connections, ...more]) {
  const args = [port, forms.chat.path, path.join(folder, 'body.json'), connections, ...more];
  const lines = headers.map((line) => `hdr=${line}`);
  const program = ['-c', LOAD_CORE, path.join(folder, 'lg'), ...args, ...lines].map(String);
  const report = JSON.parse((await run('taskset', program)).stdout);
  if (report.non2xx > 0 || report.errors > 0) throw new BenchError(`errors under load: ${JSON.stringify(report)}`);
  return report;
}

function medianOf(list, key) {
  return median(list.map((entry) => entry[key]));
}

runProgram(main);
