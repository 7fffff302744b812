/** Whether bubblewrap can isolate code on this machine, and with which limits. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { release } from 'node:os';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import type { DriverProblem, Examination } from '../driver.ts';
import { findGroups, type Groups } from './groups.ts';
import { launch } from './launch.ts';
import { seccompFilter } from './seccomp.ts';
import { bareSystem } from './system.ts';
import { type UserRange, userRange } from './users.ts';

const execFileAsync = promisify(execFile);

const OLDEST = [0, 8] as const;
/** The programs that the driver starts, with the package of Debian and Ubuntu. */
const PROGRAMS = {
  setpriv: 'util-linux',
  prlimit: 'util-linux',
  du: 'coreutils',
  mkfifo: 'coreutils',
  find: 'findutils',
};
/** Before, the kernel counted the processes of a user on the whole machine. */
const COUNTS_BY_NAMESPACE = [5, 14] as const;
const GUIDE = 'docs/guides/sandboxes.md';

/** What the driver works with. */
export interface Machine {
  /** null: sandboxes run as the gateway's user. */
  users: UserRange | null;
  /** null: only limits for each process. */
  groups: Groups | null;
  /** The filter of system calls; null where there is none for this architecture. */
  filter: Buffer | null;
  /** Whether the kernel counts processes for each sandbox. */
  countsProcesses: boolean;
  /** Descriptors that the gateway inherited and children would inherit, too. */
  inherited: readonly number[];
}

export function machineHere(clock: Clock, isRoot: boolean): Omit<Machine, 'inherited'> {
  return {
    users: isRoot ? userRange() : null,
    groups: findGroups(clock),
    filter: seccompFilter(),
    countsProcesses: isAtLeast(release(), COUNTS_BY_NAMESPACE),
  };
}

/** Tries it. @param pipeFolder that the gateway can write to */
export async function examineMachine(machine: Machine, isRoot: boolean, pipeFolder: string): Promise<Examination> {
  const unusable = (problem: DriverProblem): Examination => ({
    driver: 'bubblewrap',
    isolation: null,
    problems: [problem],
  });
  if (process.platform !== 'linux') {
    return unusable({ message: 'bubblewrap needs Linux', remedy: 'run the gateway on Linux, or in a Linux container' });
  }
  const version = await versionOf('bwrap');
  if (version === undefined) {
    return unusable({ message: 'bubblewrap is not installed', remedy: 'apt-get install bubblewrap' });
  }
  if (!isAtLeast(version, OLDEST)) {
    return unusable({ message: `bubblewrap ${version} is too old`, remedy: `install ${OLDEST.join('.')} or newer` });
  }
  for (const [program, source] of Object.entries(PROGRAMS)) {
    const isThere = (await versionOf(program)) !== undefined;
    if (!isThere) return unusable({ message: `${program} is not installed`, remedy: `apt-get install ${source}` });
  }
  if (isRoot && machine.users === null) {
    return unusable({
      message: 'the gateway is root in a user namespace that has too few users for sandboxes',
      remedy: 'run it as another user, or give the container at least 65,536 users',
    });
  }
  const failure = await tryOut(machine, pipeFolder);
  if (failure !== undefined) return unusable({ message: `bubblewrap cannot start: ${failure}`, remedy: remedyFor() });
  const user = machine.users === null ? 'the user of the gateway' : 'a user for each sandbox';
  const filter = machine.filter === null ? '' : ', filtered system calls';
  const limits = machine.groups === null ? 'limits by process' : `limits by ${machine.groups.kind}`;
  return {
    driver: 'bubblewrap',
    isolation: `bubblewrap ${version}: own namespaces, ${user}${filter}; ${limits}`,
    problems: weaknesses(machine),
  };
}

function weaknesses({ users, groups, filter, countsProcesses }: Machine): DriverProblem[] {
  const problems: DriverProblem[] = [];
  if (users === null) {
    problems.push({
      message: 'all sandboxes run as the user of the gateway; only namespaces separate them',
      remedy: 'run the gateway as root, and each sandbox gets a user of its own',
    });
  }
  if (groups === null) {
    const missing = countsProcesses ? 'memory and CPU' : 'memory, CPU and processes';
    problems.push({
      message: `${missing} of a sandbox are bounded for each process only, because the gateway may not make control groups`,
      remedy: 'run it as root, or as a systemd service with Delegate=yes',
    });
  }
  if (filter === null) {
    problems.push({ message: `system calls are not filtered on ${process.arch}`, remedy: 'use x64 or arm64' });
  }
  return problems;
}

/** Runs a command like those of sandboxes. @returns why it failed */
async function tryOut({ users, filter, inherited }: Machine, pipeFolder: string): Promise<string | undefined> {
  const execution = await launch({
    pipeFolder,
    ...{ folder: '/', environment: { PATH: '/usr/bin:/bin' }, cwd: '/', argv: ['true'] },
    ...{ system: ['--proc', '/proc', '--dev', '/dev', ...bareSystem()], filter, inherited },
    ...{ uid: users === null ? null : users.first, joinFiles: [], limits: ['--core=0'], lacksMemory: () => false },
  });
  execution.stdin.end();
  execution.stdout.resume();
  const [errors, { code, reason }] = await Promise.all([text(execution.stderr), execution.ended]);
  return code === 0 ? undefined : errors.trim().slice(0, 500) || reason;
}

function remedyFor(): string {
  const setting = (name: string) => read(`/proc/sys/${name}`);
  if (setting('kernel/apparmor_restrict_unprivileged_userns') === '1') {
    return `AppArmor forbids user namespaces: install a profile for bwrap (${GUIDE}), or set kernel.apparmor_restrict_unprivileged_userns=0`;
  }
  if (setting('kernel/unprivileged_userns_clone') === '0') {
    return 'user namespaces are off: sysctl -w kernel.unprivileged_userns_clone=1';
  }
  if (setting('user/max_user_namespaces') === '0') {
    return 'user namespaces are off: sysctl -w user.max_user_namespaces=10000';
  }
  return `a container must allow user namespaces and mounts of /proc (${GUIDE})`;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** @returns undefined if the program is not there */
async function versionOf(program: string): Promise<string | undefined> {
  try {
    const { stdout } = await execFileAsync(program, ['--version']);
    return /\d+(?:\.\d+)+/.exec(stdout)?.[0] ?? '0';
  } catch {
    return undefined;
  }
}

function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [found = 0, after = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  return found > major || (found === major && after >= minor);
}
