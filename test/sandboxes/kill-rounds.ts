/** Kills gateway, proxy and sandbox in a given order, and looks for what is left after the next start. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { openFolder } from '../../src/testing/egress-proxy/supervised.ts';
import { openSandboxes } from '../../src/testing/sandboxes/sandboxes.ts';

const HOLDER = path.join(import.meta.dirname, '..', '..', 'src', 'testing', 'sandboxes', 'holder.ts');
let marks = 0;

type Victim = 'gateway' | 'proxy' | 'sandbox';
export const ORDERS: readonly (readonly Victim[])[] = [
  ['gateway', 'proxy', 'sandbox'],
  ['gateway', 'sandbox', 'proxy'],
  ['proxy', 'gateway', 'sandbox'],
  ['proxy', 'sandbox', 'gateway'],
  ['sandbox', 'gateway', 'proxy'],
  ['sandbox', 'proxy', 'gateway'],
];

/** @param atStart kills the gateway alone while the sandbox is being made, after this time */
export async function killRound(t: TestContext, order: readonly Victim[], atStart?: number): Promise<void> {
  const folder = openFolder(t);
  // Seconds of a sleep that nothing else has.
  const mark = `99${process.pid}.${String(++marks).padStart(4, '0')}`;
  const mounts = ownMounts(folder);
  const holder = spawn(process.execPath, [HOLDER, folder, mark], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = new Promise((resolve) => holder.once('exit', resolve));
  if (atStart === undefined) {
    const pids = await startedPids(holder);
    const victims = { gateway: [holder.pid!], proxy: [pids.proxy], sandbox: pids.sandbox };
    for (const victim of order) for (const pid of victims[victim]) kill(pid);
  } else {
    await new Promise((resolve) => setTimeout(resolve, atStart));
    kill(holder.pid!);
  }
  await exited;
  const { sandboxes } = openSandboxes(t, { folder });
  await sandboxes.sweep(() => false);
  await until(() => processesWith(mark).length === 0 && processesWith(folder).length === 0, 'no process is left');
  assert.deepEqual(ownMounts(folder), mounts);
  assert.deepEqual(globSync(`/sys/fs/cgroup/{,*/}gatehouse-sandboxes/${groupOf(path.join(folder, 'sandboxes'))}`), []);
  assert.equal(existsSync(path.join(folder, 'sandboxes', 'box', 'owner')), false);
  const box = await sandboxes.create({ id: 'box', owner: 'test' });
  if (atStart === undefined) assert.equal((await box.readFile('kept', 100)).toString(), mark);
  await box.destroy();
  assert.deepEqual(await sandboxes.list(), []);
}

/** Other programs mount too, such as a container engine. */
function ownMounts(folder: string): string[] {
  const lines = readFileSync('/proc/mounts', 'utf8').split('\n');
  return lines.filter((line) => line.includes(folder) || line.includes('gatehouse-sandboxes'));
}

async function startedPids(holder: ChildProcess): Promise<{ proxy: number; sandbox: number[] }> {
  for await (const line of createInterface({ input: holder.stdout! })) return JSON.parse(line);
  throw new Error('the holder ended');
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Ended with another victim.
  }
}

/** As the driver names the control groups of its sandboxes. */
function groupOf(base: string): string {
  return `${createHash('sha256').update(base).digest('hex').slice(0, 16)}-box`;
}

function processesWith(text: string): string[] {
  return readdirSync('/proc').filter(
    (pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid && commandLine(pid).includes(text),
  );
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}
