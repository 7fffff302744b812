/** Processes that tests start, watch and kill. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';

export interface StartedProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  /** What it has printed so far: a JSON value a line. */
  readonly printed: unknown[];
  /** What it wrote to its error output. */
  errors(): string;
  readonly ended: boolean;
}

/** Runs a TypeScript file; it is killed at the end of the test if it still runs. */
export function startProcess(
  test: Pick<TestContext, 'after'>,
  file: string,
  args: readonly string[],
  options: SpawnOptions = {},
): StartedProcess {
  const child = spawn(process.execPath, [file, ...args], {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const printed: unknown[] = [];
  let rest = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) printed.push(JSON.parse(line));
  });
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  let ended = false;
  // After its output has been read to the end.
  child.on('close', () => {
    ended = true;
  });
  test.after(() => child.kill('SIGKILL'));
  return {
    child,
    pid: child.pid ?? 0,
    printed,
    errors: () => errors,
    get ended() {
      return ended;
    },
  };
}

/** Ids of the live (no zombies) children of a process, theirs included; Linux only. */
export function descendantsOf(pid: number): number[] {
  const parents = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = parentOf(Number(name));
    if (parent !== undefined) parents.set(parent, [...(parents.get(parent) ?? []), Number(name)]);
  }
  const found: number[] = [];
  for (const queue = [pid]; queue.length > 0; ) {
    const children = parents.get(queue.shift()!) ?? [];
    found.push(...children);
    queue.push(...children);
  }
  return found;
}

/** Undefined when the process is gone or a zombie. */
export function parentOf(pid: number): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in parentheses, which may hold anything.
    const [state, parent] = status.slice(status.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' ? undefined : Number(parent);
  } catch {
    return undefined;
  }
}

export function isAlive(pid: number): boolean {
  return parentOf(pid) !== undefined;
}

/** Ids of the live processes of a session, its leader excepted. */
export function sessionOf(leader: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === leader) return [];
    try {
      const status = readFileSync(`/proc/${name}/stat`, 'utf8');
      const [state, , , session] = status.slice(status.lastIndexOf(')') + 2).split(' ');
      return state !== 'Z' && Number(session) === leader ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}
