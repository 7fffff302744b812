/**
 * `node bench/turns.mjs`: what the turns of a server tool cost. Requests of 1 KB in three kinds: a plain one, one with the
 * tool `svc:datetime` whose model does not call it, and one whose model calls it in `--turns` turns before it answers. The
 * CPU time of a further turn (a call of the upstream, the tool, and all accounts) is shown as a ratio to a plain request.
 *
 *   node bench/turns.mjs [--rounds N] [--seconds S] [--turns N] [--warmup S]
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { requestBody } from './bodies.mjs';
import { proveIt, startGateway } from './subjects.mjs';
import {
  BenchError,
  build,
  cpuMicros,
  freePort,
  HERE,
  LOAD_CORE,
  listening,
  median,
  runProgram,
  start,
  stopAll,
} from './tools.mjs';

const run = promisify(execFile);

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    turns: { type: 'string', default: '8' },
    warmup: { type: 'string', default: '20' },
  },
});

const TURNS = Number(options.turns);
const KINDS = { plain: undefined, uncalled: 0, called: TURNS };

async function main() {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-bench-'));
  try {
    build(folder);
    const upstreamPort = await freePort();
    const upstream = start(LOAD_CORE, process.execPath, [
      path.join(HERE, 'calling-upstream.mjs'),
      String(upstreamPort),
    ]);
    await listening(upstreamPort, upstream, 'the upstream');
    const gateway = await startGateway(folder, upstreamPort);
    for (const [kind, turns] of Object.entries(KINDS)) {
      const body = bodyOf(gateway, turns);
      await proveIt(gateway, 'chat', body);
      writeFileSync(path.join(folder, `${kind}.json`), body);
    }
    for (const kind of Object.keys(KINDS)) await load(folder, gateway, kind, options.warmup);
    const rounds = [];
    for (let round = 0; round < Number(options.rounds); round++) {
      const cost = {};
      for (const kind of Object.keys(KINDS)) cost[kind] = await load(folder, gateway, kind, options.seconds);
      rounds.push({ ...cost, turn: (cost.called - cost.uncalled) / TURNS });
    }
    const ratio = (kind) => median(rounds.map((each) => each[kind] / each.plain)).toFixed(2);
    const micros = (kind) => Math.round(median(rounds.map((each) => each[kind])));
    console.log(`a plain request: ${micros('plain')} us of CPU time`);
    console.log(`with a tool that is not called: ${micros('uncalled')} us, ${ratio('uncalled')}x`);
    console.log(`each further turn, of ${TURNS}: ${micros('turn')} us, ${ratio('turn')}x`);
  } finally {
    await stopAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param turns in which the tool is called; undefined: there is no tool */
function bodyOf(gateway, turns) {
  const body = JSON.parse(requestBody(gateway, 'chat', { bytes: 1000 }));
  if (turns === undefined) return JSON.stringify(body);
  body.messages.at(-1).content += ` turns=${turns}.`;
  return JSON.stringify({ ...body, tools: [{ type: 'svc:datetime' }] });
}

/** Microseconds of the gateway for one request. */
async function load(folder, { port, headers, forms, pids }, kind, seconds) {
  const args = [port, forms.chat.path, path.join(folder, `${kind}.json`), '16', seconds];
  const lines = headers.map((line) => `hdr=${line}`);
  const before = cpuMicros(pids());
  const program = ['-c', LOAD_CORE, path.join(folder, 'lg'), ...args, ...lines].map(String);
  const report = JSON.parse((await run('taskset', program)).stdout);
  if (report.non2xx > 0 || report.errors > 0) throw new BenchError(`errors under load: ${JSON.stringify(report)}`);
  return (cpuMicros(pids()) - before) / report.requests;
}

runProgram(main);
