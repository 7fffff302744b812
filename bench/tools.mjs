/** Tools of the benchmark: the C programs, processes pinned to a core, and their CPU accounting by the kernel. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export const HERE = import.meta.dirname;
/** The subject runs on one core, load and upstream on the other, so that neither takes time from the other. */
export const SUBJECT_CORE = 0;
export const LOAD_CORE = 1;

/** A missing tool or a subject that does not start: told to the user in one line. */
export class BenchError extends Error {}

/** Runs a program of the benchmark. What it has started ends with it, however it ends. */
export function runProgram(main) {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, async () => {
      await stopAll();
      process.exit(130);
    });
  }
  main().catch((error) => {
    console.error(error instanceof BenchError ? error.message : error);
    process.exitCode = 1;
  });
}

export function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}

export function need(program, hint) {
  const found = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin'].some((folder) =>
    existsSync(path.join(folder, program)),
  );
  if (!found && !existsSync(program)) throw new BenchError(`${program} is missing: ${hint}`);
}

/** Compiles lg and mock into `folder`. */
export function build(folder) {
  need('gcc', 'install it (Debian: apt-get install gcc libc6-dev)');
  need('taskset', 'install util-linux');
  for (const tool of ['lg', 'mock'])
    execFileSync('gcc', ['-O2', '-w', '-o', path.join(folder, tool), path.join(HERE, `${tool}.c`)]);
}

const children = new Set();

/** Starts a program on a core. `output` collects what it says. */
export function start(core, program, args, options = {}) {
  const child = spawn('taskset', ['-c', String(core), program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
  });
  const started = { child, output: '' };
  const note = (text) => {
    started.output = (started.output + text).slice(-20_000);
  };
  child.stdout.on('data', note);
  child.stderr.on('data', note);
  child.on('error', (error) => note(error.message));
  child.on('close', () => children.delete(started));
  children.add(started);
  return started;
}

/** Ends what was started here, by its own process id, and waits until it is gone. */
export async function stop(started) {
  if (started.child.exitCode !== null || started.child.signalCode !== null) return;
  const gone = new Promise((resolve) => started.child.once('close', resolve));
  started.child.kill('SIGTERM');
  const late = sleep(10_000, 'late', { ref: false });
  if ((await Promise.race([gone, late])) === 'late') started.child.kill('SIGKILL');
  await gone;
}

export async function stopAll() {
  await Promise.all([...children].map(stop));
}

export async function listening(port, started, name) {
  for (let tries = 0; tries < 600; tries++) {
    if (started.child.exitCode !== null) throw new BenchError(`${name} ended before it listened:\n${started.output}`);
    const open = await new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1');
      socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });
    if (open) return;
    await sleep(100);
  }
  throw new BenchError(`${name} did not listen within 60 s:\n${started.output}`);
}

export async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The process and its descendants, as they are now. */
export function family(pid) {
  const children = new Map();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const parent = attempt(() => Number(readFileSync(`/proc/${entry}/stat`, 'utf8').split(') ')[1].split(' ')[1]));
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const all = [pid];
  for (let at = 0; at < all.length; at++) all.push(...(children.get(all[at]) ?? []));
  return all;
}

/** Of a family: whether a process belongs to the database. */
export function isDatabase(pid) {
  return /postgres/.test(attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ?? '');
}

/** Microseconds on a processor, over all threads. Ones that have ended are not in it. */
export function cpuMicros(pids) {
  let nanos = 0;
  for (const pid of pids) {
    for (const thread of attempt(() => readdirSync(`/proc/${pid}/task`)) ?? []) {
      nanos += attempt(() => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])) ?? 0;
    }
  }
  return nanos / 1000;
}

/** Proportional set size in MB: memory that processes share is counted once. */
export function memoryMb(pids) {
  let kilobytes = 0;
  for (const pid of pids) {
    const rollup = attempt(() => readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? '';
    kilobytes += Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0);
  }
  return kilobytes / 1024;
}

function attempt(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}
