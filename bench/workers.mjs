/**
 * Throughput and processor time of 1 KB requests with 1, 2 and 4 workers: gateway, database, upstream and load share all cores, so the
 * requests a second show what this machine carries in all, and the processor time per request whether workers cost each other anything.
 *
 *   node bench/workers.mjs [--rounds N] [--seconds S] [--warmup S] [--json]
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { requestBody } from './bodies.mjs';
import { proveIt, startGateway } from './subjects.mjs';
import { BenchError, build, cpuMicros, freePort, listening, median, runProgram, start, stopAll } from './tools.mjs';

const run = promisify(execFile);
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    warmup: { type: 'string', default: '20' },
    json: { type: 'boolean', default: false },
  },
});
const COUNTS = [1, 2, 4];
const CONNECTIONS = '64';
const ALL_CORES = `0-${availableParallelism() - 1}`;

async function main() {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-workers-'));
  try {
    build(folder);
    const upstreamPort = await freePort();
    const mock = start(ALL_CORES, path.join(folder, 'mock'), [upstreamPort, 1000, 250, 270, 5000].map(String));
    await listening(upstreamPort, mock, 'the mock upstream');
    const subjects = [];
    for (const workers of COUNTS) {
      const env = { GATEHOUSE_WORKERS: String(workers) };
      const subject = await startGateway(folder, upstreamPort, { name: `workers-${workers}`, env, core: ALL_CORES });
      await proveIt(subject, 'chat', requestBody(subject, 'chat', { bytes: 1000 }));
      await load(folder, subject, options.warmup);
      subjects.push({ workers, subject, rounds: [] });
    }
    for (let round = 0; round < Number(options.rounds); round++) {
      for (const { subject, rounds } of subjects) rounds.push(await measure(folder, subject));
    }
    report(subjects);
  } finally {
    await stopAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(folder, subject) {
  const [own, database] = [subject.pids(), subject.databasePids()];
  const before = [cpuMicros(own), cpuMicros(database)];
  const { requests, secs, non2xx, errors } = await load(folder, subject, options.seconds);
  if (non2xx > 0 || errors > 0)
    throw new BenchError(`${subject.name}: ${non2xx} error statuses, ${errors} broken answers`);
  return {
    perSecond: requests / secs,
    micros: (cpuMicros(own) - before[0]) / requests,
    databaseMicros: (cpuMicros(database) - before[1]) / requests,
  };
}

async function load(folder, subject, seconds) {
  const body = path.join(folder, `${subject.name}.json`);
  writeFileSync(body, requestBody(subject, 'chat', { bytes: 1000 }));
  const headers = subject.headers.map((line) => `hdr=${line}`);
  const args = [String(subject.port), subject.forms.chat.path, body, CONNECTIONS, seconds, ...headers];
  const { stdout } = await run('taskset', ['-c', ALL_CORES, path.join(folder, 'lg'), ...args]);
  return JSON.parse(stdout);
}

function report(subjects) {
  const at = (rounds, key) => median(rounds.map((round) => round[key]));
  const rows = subjects.map(({ workers, rounds }) => ({
    workers,
    perSecond: at(rounds, 'perSecond'),
    micros: at(rounds, 'micros'),
    databaseMicros: at(rounds, 'databaseMicros'),
  }));
  if (options.json) return console.log(JSON.stringify(rows, null, 2));
  for (const { workers, perSecond, micros, databaseMicros } of rows) {
    const [one] = rows;
    console.log(
      `${workers} workers: ${Math.round(perSecond)} requests/s (${(perSecond / one.perSecond).toFixed(2)}x), ` +
        `${micros.toFixed(1)} us + ${databaseMicros.toFixed(1)} us database a request (${(micros / one.micros).toFixed(2)}x)`,
    );
  }
}

runProgram(main);
