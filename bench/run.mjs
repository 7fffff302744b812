/**
 * `npm run bench`: what the gateway costs, as a ratio to nginx in front of the same upstream. Each case is run for every
 * subject in turn, several rounds, and the median is shown; a busy machine then shifts both sides. See README.md.
 *
 *   node bench/run.mjs [--rounds N] [--seconds S] [--warmup S] [--only TEXT] [--endpoints N] [--nginx PATH]
 *     [--no-bare] [--portkey DIR] [--peers] [--peers-in DIR] [--json]
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { patternEngine } from '../src/guardrails/filters/engine.ts';
import { requestBody, writeAnswers } from './bodies.mjs';
import { EGRESS, measureEgress } from './egress.mjs';
import { ANSWERS, GOVERNED, GOVERNED_CASES, startGoverned } from './governed.mjs';
import { OBSERVED, OBSERVED_CASES, startObserved } from './observed.mjs';
import { pairsNamed, writeFrames } from './pairs.mjs';
import { installPeers, LEFT_OUT, PEER_CASES, PEERS, peerStarts } from './peers.mjs';
import { readStretches } from './stretches.mjs';
import { proveIt, startBare, startGateway, startNginx, startPortkey, upstreamItself } from './subjects.mjs';
import {
  BenchError,
  build,
  cpuMicros,
  freePort,
  LOAD_CORE,
  listening,
  median,
  memoryMb,
  runProgram,
  start,
  stop,
  stopAll,
} from './tools.mjs';

const run = promisify(execFile);

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    warmup: { type: 'string', default: '20' },
    only: { type: 'string', default: '' },
    endpoints: { type: 'string' },
    nginx: { type: 'string' },
    bare: { type: 'boolean', default: true },
    portkey: { type: 'string' },
    peers: { type: 'boolean', default: false },
    'peers-in': { type: 'string' },
    json: { type: 'boolean', default: false },
  },
  allowNegative: true,
});

/** Subjects that are not compared with the plain gateway. */
const REFERENCES = ['nginx', 'bare', 'gateway', ...PEERS];

/**
 * `unit` is what the processor time is divided by. Paced streams: 250 events of 270 bytes, 5 ms apart, 50 at a time, with
 * staggered starts, as models send them. `translated` is a messages client on the chat upstream; nginx cannot do that, so
 * its figure is the relayed stream's. `seconds` is the least that a case needs for its percentiles. Cases of `text` have
 * dashes, quotes, accents, Chinese and emoji in bodies and answers, as nearly all real traffic has; the others are ASCII.
 * `agent` is the body of a coding agent in its fortieth turn; how long it holds the event loop is measured as well.
 */
const TEXT = { form: 'text', text: true };
const CASES = [
  { name: '1 KB, saturated', unit: 'requests', bytes: 1000, load: ['32'] },
  { name: '1 KB of text, saturated', unit: 'requests', bytes: 1000, ...TEXT, load: ['32'] },
  { name: '100 KB, saturated', unit: 'requests', bytes: 100_000, load: ['32'] },
  { name: '100 KB of text, saturated', unit: 'requests', bytes: 100_000, ...TEXT, load: ['32'] },
  { name: '500 KB of an agent, saturated', unit: 'requests', bytes: 500_000, agent: true, ...TEXT, load: ['8'] },
  { name: '1 KB, 1000 requests/s', unit: 'requests', bytes: 1000, load: ['64', 'rate=1000'], latency: true },
  { name: 'stream relayed, paced', unit: 'events', bytes: 1000, stream: true, load: ['50', 'stagger=20000'] },
  {
    name: 'stream of text relayed, paced',
    unit: 'events',
    ...{ bytes: 1000, stream: true, ...TEXT, load: ['50', 'stagger=20000'] },
  },
  {
    name: '5 streams relayed, paced',
    ...{ unit: 'events', bytes: 1000, stream: true, load: ['5', 'stagger=20000'], seconds: 10 },
  },
  {
    name: 'stream translated, paced',
    unit: 'events',
    bytes: 1000,
    stream: true,
    form: 'messages',
    load: ['50', 'stagger=20000'],
  },
  { name: '100 vectors of 1,536', unit: 'requests', bytes: 6000, form: 'embeddings', load: ['8'] },
  { name: 'overload, 1000 connections', unit: 'requests', bytes: 1000, load: ['1000'] },
];

async function main() {
  if (process.platform !== 'linux') throw new BenchError('the benchmark reads /proc and so needs Linux');
  if (availableParallelism() < 2) throw new BenchError('the benchmark needs two cores');
  if (options.only === EGRESS) {
    const [rounds, seconds, warmup] = [options.rounds, options.seconds, options.warmup].map(Number);
    return measureEgress({ rounds, seconds, warmup, json: options.json });
  }
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-bench-'));
  try {
    build(folder);
    const upstreamPort = await freePort();
    const mock = start(LOAD_CORE, path.join(folder, 'mock'), [
      ...[upstreamPort, 1000, 250, 270, 5000].map(String),
      ...writeFrames(folder),
      ...writeAnswers(folder),
    ]);
    await listening(upstreamPort, mock, 'the mock upstream');
    if (options.peers) await measurePeers(folder, upstreamPort);
    else await measureOwn(folder, upstreamPort);
  } finally {
    await stopAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureOwn(folder, upstreamPort) {
  const subjects = [await startNginx(folder, upstreamPort, options.nginx), await startGateway(folder, upstreamPort)];
  if (options.endpoints) {
    const endpoints = Number(options.endpoints);
    subjects.push(await startGateway(folder, upstreamPort, { name: `gateway-${endpoints}`, endpoints }));
  }
  if (options.only.startsWith(OBSERVED)) subjects.push(...(await startObserved(folder, upstreamPort)));
  if (options.only.startsWith(GOVERNED)) {
    subjects.push(...(await startGoverned(folder, upstreamPort)));
    if (!options.json) console.log(`patterns are matched by ${patternEngine()}`);
  }
  if (options.bare) subjects.push(await startBare(folder, upstreamPort));
  if (options.portkey) subjects.push(await startPortkey(path.resolve(options.portkey), upstreamPort));
  await measureAll(folder, subjects, upstreamItself(upstreamPort));
}

/** Starts every subject a second time, when its files are prepared, and times it to its first answer. */
async function measurePeers(folder, upstreamPort) {
  const installed = options['peers-in'] ? path.resolve(options['peers-in']) : path.join(folder, 'peers');
  if (!options.json) console.log('installing the peers');
  await installPeers(installed);
  for (const [name, why] of Object.entries(LEFT_OUT)) if (!options.json) console.log(`${name} is left out: ${why}`);
  const starts = [
    () => startNginx(folder, upstreamPort, options.nginx),
    () => startBare(folder, upstreamPort),
    () => startGateway(folder, upstreamPort),
    ...peerStarts(installed, folder, upstreamPort),
  ];
  const subjects = [];
  for (const startOne of starts) {
    await stop((await startOne()).started);
    subjects.push(await timedStart(startOne));
  }
  if (!options.json) {
    const times = subjects.map(({ name, startMs }) => `${name} ${(startMs / 1000).toFixed(2)} s`);
    console.log(`start to the first answer: ${times.join(', ')}`);
  }
  await measureAll(folder, subjects, upstreamItself(upstreamPort));
}

async function timedStart(startOne) {
  const startedAt = performance.now();
  const subject = await startOne();
  await proveIt(subject, 'chat', requestBody(subject, 'chat', { bytes: 1000 }));
  return { ...subject, startMs: performance.now() - startedAt };
}

/** Those that stand beside the default run are asked for by the beginning of their names. */
function casesOf(only) {
  const pairs = pairsNamed(only);
  if (pairs.length > 0) return pairs;
  if (only.startsWith(GOVERNED)) return GOVERNED_CASES.filter(({ name }) => name.startsWith(only));
  if (only.startsWith(OBSERVED)) return OBSERVED_CASES.filter(({ name }) => name.startsWith(only));
  return CASES.filter(({ name }) => name.includes(only) && (!options.peers || PEER_CASES.includes(name)));
}

async function measureAll(folder, subjects, upstream) {
  // What starting has left behind is given back after two seconds.
  await sleep(5000);
  const idle = subjects.filter(({ name }) => name !== ANSWERS).map((subject) => [subject.name, memoryOf(subject)]);
  const results = [];
  for (const testCase of casesOf(options.only)) {
    const able = subjects.filter(
      ({ name, forms }) => forms[testCase.form ?? 'chat'] !== undefined && (name !== ANSWERS || testCase.answers),
    );
    const stand = testCase.pair || able.includes(subjects[0]) ? [] : [{ subject: subjects[0], form: 'chat' }];
    // What the first byte of a stream is compared with.
    if (isPaced(testCase)) stand.unshift({ subject: upstream, form: testCase.text ? 'text' : 'chat' });
    const runs = [...stand, ...able.map((subject) => ({ subject, form: testCase.form ?? 'chat' }))];
    const rounds = new Map(runs.map(({ subject }) => [subject.name, []]));
    for (const { subject, form } of runs) {
      await proveIt(subject, form, requestBody(subject, form, { ...testCase, stream: testCase.pair === true }));
      await warmUp(folder, subject, form, testCase);
    }
    for (let round = 0; round < Number(options.rounds); round++) {
      for (const { subject, form } of runs) {
        writeBody(folder, subject, form, testCase);
        rounds.get(subject.name).push(await measure(folder, subject, form, testCase));
      }
    }
    const result = {
      case: testCase.name,
      unit: testCase.unit,
      subjects: Object.fromEntries([...rounds].map(([name, list]) => [name, medians(list)])),
    };
    if (testCase.agent) await measureTurns(folder, runs, testCase, result.subjects);
    results.push(result);
    if (!options.json) print(testCase, result, results);
  }
  if (options.json)
    console.log(JSON.stringify({ idleMb: Object.fromEntries(idle), startMs: startsOf(subjects), results }, null, 2));
  else
    console.log(
      `\nmemory idle, MB (database beside it): ${idle.map(([name, mb]) => `${name} ${memoryText(mb)}`).join(', ')}`,
    );
}

function startsOf(subjects) {
  const timed = subjects.filter(({ startMs }) => startMs !== undefined);
  return Object.fromEntries(timed.map(({ name, startMs }) => [name, startMs]));
}

function isPaced(testCase) {
  return testCase.stream === true && testCase.pair !== true;
}

async function warmUp(folder, subject, form, testCase) {
  if (subject.name === 'upstream') return;
  // Streams with pauses are few: what begins one would be compiled in the middle of what is measured.
  if (isPaced(testCase) && subject.name !== 'nginx') {
    const unpaced = { ...testCase, paced: false, load: ['16'] };
    writeBody(folder, subject, form, unpaced);
    await load(folder, subject, form, unpaced, options.warmup);
  }
  writeBody(folder, subject, form, testCase);
  // The load tool keeps every latency of an open loop in a buffer that is made for short runs.
  const closed = { ...testCase, load: testCase.load.filter((arg) => !arg.startsWith('rate=')) };
  await load(folder, subject, form, closed, subject.name === 'nginx' || isPaced(testCase) ? '2' : options.warmup);
}

async function measure(folder, subject, form, testCase) {
  // The processes are listed once, so that their reading is not within the measured time.
  const own = subject.pids();
  const database = subject.databasePids();
  const before = [cpuMicros(own), cpuMicros(database)];
  // A paced stream takes 1.3 s, and only complete ones are counted.
  const seconds = Math.max(Number(options.seconds), testCase.stream ? 3 : 0, testCase.seconds ?? 0);
  const report = await load(folder, subject, form, testCase, String(seconds));
  const count = report[testCase.unit];
  if (report.non2xx > 0 || report.errors > 0) {
    throw new BenchError(
      `${subject.name}, ${testCase.name}: ${report.non2xx} error statuses, ${report.errors} broken answers`,
    );
  }
  if (count === 0) {
    if (PEERS.includes(subject.name)) return unanswered(report, subject);
    throw new BenchError(`${subject.name}, ${testCase.name}: nothing was answered`);
  }
  return {
    micros: (cpuMicros(own) - before[0]) / count,
    databaseMicros: (cpuMicros(database) - before[1]) / count,
    perSecond: count / report.secs,
    p50: report.p50,
    p99: report.p99,
    ttfb50: report.ttfb50,
    ttfb99: report.ttfb99,
    memory: memoryOf(subject),
  };
}

/** A peer that completed no request in a round; its figures are infinite, and shown as such. */
function unanswered(report, subject) {
  const { p50, p99, ttfb50, ttfb99 } = report;
  const micros = Number.POSITIVE_INFINITY;
  return { micros, databaseMicros: 0, perSecond: 0, p50, p99, ttfb50, ttfb99, memory: memoryOf(subject) };
}

/** Adds how long one request holds the event loop, to what was measured of each subject of Node.js. */
async function measureTurns(folder, runs, testCase, measured) {
  for (const { subject, form } of runs) {
    if (subject.stretches === undefined) continue;
    writeBody(folder, subject, form, testCase);
    const alone = { ...testCase, load: ['1'] };
    measured[subject.name].turns = await readStretches(subject.stretches, async () => {
      const { requests } = await load(folder, subject, form, alone, '3');
      return requests;
    });
  }
}

async function load(folder, subject, form, { load: shape }, seconds) {
  const [connections, ...more] = shape;
  const headers = subject.headers.map((line) => `hdr=${line}`);
  const body = path.join(folder, `${subject.name}.json`);
  const args = [String(subject.port), subject.forms[form].path, body, connections, seconds, ...more, ...headers];
  const { stdout } = await run('taskset', ['-c', String(LOAD_CORE), path.join(folder, 'lg'), ...args]);
  return JSON.parse(stdout);
}

function writeBody(folder, subject, form, testCase) {
  writeFileSync(path.join(folder, `${subject.name}.json`), requestBody(subject, form, testCase));
}

function memoryOf(subject) {
  return { own: memoryMb(subject.pids()), database: memoryMb(subject.databasePids()) };
}

function medians(list) {
  const at = (key) => median(list.map((entry) => entry[key]));
  const figures = Object.fromEntries(
    ['micros', 'databaseMicros', 'perSecond', 'p50', 'p99', 'ttfb50', 'ttfb99'].map((key) => [key, at(key)]),
  );
  const largest = list.reduce((most, { memory }) => (memory.own > most.own ? memory : most), { own: 0, database: 0 });
  return { ...figures, memory: largest };
}

function print(testCase, { subjects }, results) {
  const unit = testCase.unit === 'events' ? 'event' : 'request';
  console.log(`\n${testCase.name} (median of ${options.rounds})`);
  const relayed = results.find(({ case: name }) => name === testCase.yardstick);
  const plain = testCase.compared ? subjects.gateway : undefined;
  const { upstream, ...measured } = subjects;
  for (const [name, figures] of Object.entries(measured)) {
    // A translated stream is measured by the relayed one of the same form, everything else by nginx.
    const yardstick = relayed?.subjects[name] ?? subjects.nginx;
    const share = plain && !REFERENCES.includes(name) ? figures.micros / plain.micros : undefined;
    const ratio = `${(figures.micros / yardstick.micros).toFixed(relayed ? 2 : 1)}x${
      share === undefined ? '' : `, ${share.toFixed(2)}x of the gateway`
    }`;
    const database = figures.databaseMicros >= 0.05 ? ` + ${figures.databaseMicros.toFixed(1)} database` : '';
    const parts = [
      `${figures.micros.toFixed(1)} us/${unit}${database} (${ratio}${bareRatio(name, figures, subjects.bare)})`,
      `${Math.round(figures.perSecond)} ${unit}s/s`,
      `first byte p50/p99 ${figures.ttfb50}/${figures.ttfb99} us${
        upstream ? `, added ${figures.ttfb50 - upstream.ttfb50}/${figures.ttfb99 - upstream.ttfb99}` : ''
      }`,
      `memory ${memoryText(figures.memory)} MB`,
    ];
    if (testCase.latency) {
      parts.splice(
        2,
        1,
        `p50/p99 ${figures.p50}/${figures.p99} us, added to nginx ${figures.p50 - yardstick.p50}/${figures.p99 - yardstick.p99}`,
      );
    }
    if (figures.turns) {
      const { sumMs, cpuMs, longestMs } = figures.turns;
      parts.push(
        `event loop ${sumMs.toFixed(2)} ms/request (${cpuMs.toFixed(2)} of processor), longest turn ${longestMs.toFixed(2)} ms`,
      );
    }
    console.log(`  ${name.padEnd(8)} ${parts.join(', ')}`);
  }
}

function bareRatio(name, { micros }, bare) {
  if (bare === undefined || name === 'bare' || name === 'nginx') return '';
  return `, ${(micros / bare.micros).toFixed(2)}x bare`;
}

function memoryText({ own, database }) {
  return database > 0 ? `${Math.round(own)} + ${Math.round(database)}` : String(Math.round(own));
}

runProgram(main);
