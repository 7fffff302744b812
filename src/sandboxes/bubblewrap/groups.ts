/**
 * Control groups of the kernel, which bound memory, processes and CPU of a sandbox as a whole. Version 2 needs a part of the
 * hierarchy that the gateway may divide (`Delegate=yes` of systemd, or a container with a writable one); version 1 needs root.
 */
import { accessSync, constants, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Clock, sleep } from '../../base/clock.ts';
import type { SandboxLimits } from '../sandbox.ts';
import { kill } from './processes.ts';

/** Limits of one sandbox, as long as it runs. */
export interface Group {
  /** A process that writes its id into these files is in the group. */
  readonly joinFiles: readonly string[];
  /** How often the kernel has ended a process for want of memory. */
  memoryKills(): number;
  /** Ends all processes and removes the group. */
  remove(): Promise<void>;
}

export interface Groups {
  /** For the doctor: `cgroup v2` or `cgroup v1`. */
  readonly kind: string;
  make(name: string, limits: SandboxLimits): Group;
  /** One that exists, or not any more. */
  existing(name: string): Group;
}

const FOLDER = 'gatehouse-sandboxes';
/** Where the processes of the gateway go, because a group of version 2 has either processes or parts. */
const OWN_FOLDER = 'gatehouse';
const CPU_PERIOD_US = 100_000;
const REMOVE_TRIES = 200;
const REMOVE_DELAY_MS = 10;

/** @returns null where the gateway may make no groups. @param proc replaced in tests */
export function findGroups(clock: Clock, proc = '/proc/self'): Groups | null {
  try {
    const mounts = readFileSync(path.join(proc, 'mountinfo'), 'utf8').split('\n').map(mountOf);
    const own = readFileSync(path.join(proc, 'cgroup'), 'utf8').split('\n');
    return versionTwo(mounts, own, clock) ?? versionOne(mounts, clock);
  } catch {
    return null;
  }
}

interface Mount {
  folder: string;
  type: string;
  options: readonly string[];
}

function mountOf(line: string): Mount {
  const [before = '', after = ''] = line.split(' - ');
  const [type = '', , options = ''] = after.split(' ');
  return { folder: before.split(' ')[4] ?? '', type, options: options.split(',') };
}

function versionTwo(mounts: readonly Mount[], own: readonly string[], clock: Clock): Groups | null {
  const mount = mounts.find(({ type }) => type === 'cgroup2');
  const place = own.find((line) => line.startsWith('0::'))?.slice(3);
  if (mount === undefined || place === undefined) return null;
  const here = path.join(mount.folder, place);
  // Another process of the gateway has divided the group already.
  const base = path.basename(here) === OWN_FOLDER ? path.dirname(here) : here;
  const controllers = () => words(path.join(base, 'cgroup.controllers'));
  if (!['memory', 'pids'].every((name) => controllers().includes(name))) return null;
  const wanted = ['memory', 'pids', 'cpu'].filter((name) => controllers().includes(name));
  const root = path.join(base, FOLDER);
  try {
    divide(base, wanted);
    makeOwn(root);
    divide(root, wanted);
  } catch {
    return null;
  }
  return new GroupsIn('cgroup v2', [root], clock, (limits) => ({
    'memory.max': limits.memoryBytes,
    'memory.swap.max': 0,
    'memory.oom.group': 1,
    'pids.max': limits.processes,
    'cpu.max': `${Math.round(limits.cpus * CPU_PERIOD_US)} ${CPU_PERIOD_US}`,
  }));
}

/** @throws Error if this process may not make groups in it */
function makeOwn(folder: string): void {
  mkdirSync(folder, { recursive: true });
  accessSync(folder, constants.W_OK);
}

/** Lets parts of a group have limits. Its own processes have to move into a part for that, unless it is the root. */
function divide(folder: string, controllers: readonly string[]): void {
  const file = path.join(folder, 'cgroup.subtree_control');
  const missing = controllers.filter((name) => !words(file).includes(name));
  if (missing.length === 0) return;
  const order = missing.map((name) => `+${name}`).join(' ');
  try {
    writeFileSync(file, order);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
    const part = path.join(folder, OWN_FOLDER);
    mkdirSync(part, { recursive: true });
    for (const pid of words(path.join(folder, 'cgroup.procs'))) writeFileSync(path.join(part, 'cgroup.procs'), pid);
    writeFileSync(file, order);
  }
}

function versionOne(mounts: readonly Mount[], clock: Clock): Groups | null {
  const folderOf = (controller: string) =>
    mounts.find(({ type, options }) => type === 'cgroup' && options.includes(controller))?.folder;
  const [memory, pids, cpu] = [folderOf('memory'), folderOf('pids'), folderOf('cpu')];
  if (memory === undefined || pids === undefined) return null;
  const roots = [...new Set([memory, pids, cpu].filter((each) => each !== undefined))];
  const folders = roots.map((each) => path.join(each, FOLDER));
  try {
    for (const folder of folders) makeOwn(folder);
  } catch {
    return null;
  }
  return new GroupsIn('cgroup v1', folders, clock, (limits) => ({
    'memory.limit_in_bytes': limits.memoryBytes,
    'memory.memsw.limit_in_bytes': limits.memoryBytes,
    'memory.swappiness': 0,
    'pids.max': limits.processes,
    'cpu.cfs_period_us': CPU_PERIOD_US,
    'cpu.cfs_quota_us': Math.round(limits.cpus * CPU_PERIOD_US),
  }));
}

/** Without these a sandbox must not run. The others are not there on every machine. */
const NEEDED = /^(?:memory\.max|memory\.limit_in_bytes|pids\.max)$/;

class GroupsIn implements Groups {
  readonly kind: string;
  readonly #roots: readonly string[];
  readonly #clock: Clock;
  readonly #settings: (limits: SandboxLimits) => Record<string, string | number>;

  constructor(
    kind: string,
    roots: readonly string[],
    clock: Clock,
    settings: (limits: SandboxLimits) => Record<string, string | number>,
  ) {
    this.kind = kind;
    this.#roots = roots;
    this.#clock = clock;
    this.#settings = settings;
  }

  make(name: string, limits: SandboxLimits): Group {
    const folders = this.#roots.map((root) => path.join(root, name));
    for (const folder of folders) mkdirSync(folder, { recursive: true });
    for (const [file, value] of Object.entries(this.#settings(limits))) {
      const folder = folders.find((each) => filesOf(each).includes(file));
      if (folder !== undefined) writeFileSync(path.join(folder, file), String(value));
      else if (NEEDED.test(file)) throw new Error(`${this.kind} has no ${file} in ${folders.join(', ')}`);
    }
    return this.existing(name);
  }

  existing(name: string): Group {
    const folders = this.#roots.map((root) => path.join(root, name));
    return {
      joinFiles: folders.map((folder) => path.join(folder, 'cgroup.procs')),
      memoryKills: () => Math.max(...folders.map(killsIn)),
      remove: async () => {
        for (const folder of folders) await this.#remove(folder);
      },
    };
  }

  /** Forbids new processes first: a process could fork faster than it is killed. */
  async #remove(folder: string): Promise<void> {
    if (filesOf(folder).includes('pids.max')) writeFileSync(path.join(folder, 'pids.max'), '0');
    for (let tries = 0; ; tries++) {
      try {
        for (const pid of words(path.join(folder, 'cgroup.procs'))) kill(Number(pid));
        rmdirSync(folder);
        return;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'ENOENT') return;
        if (code !== 'EBUSY' || tries === REMOVE_TRIES) throw error;
        await sleep(this.#clock, REMOVE_DELAY_MS);
      }
    }
  }
}

function killsIn(folder: string): number {
  for (const file of ['memory.events', 'memory.oom_control']) {
    const found = /^oom_kill (\d+)$/m.exec(text(path.join(folder, file)));
    if (found !== null) return Number(found[1]);
  }
  return 0;
}

function words(file: string): string[] {
  return readFileSync(file, 'utf8').split(/\s+/).filter(Boolean);
}

function text(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
