/**
 * Starts a command in a sandbox of its own namespaces. The order of the programs: a shell joins the control group; `setpriv` becomes
 * the sandbox's user, if there is one; `bwrap` makes the namespaces and ends with the gateway; `prlimit` sets limits that processes
 * inherit; a shell waits for the gateway's word, and becomes the command.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import type { DriverExecution } from '../driver.ts';
import type { Ending, EndReason } from '../sandbox.ts';
import { makePipes, type OutputPipes } from './pipes.ts';
import { childrenOf, kill } from './processes.ts';
import { INSIDE_USER } from './system.ts';

interface Launch {
  /** Where pipes can be made for a moment. */
  pipeFolder: string;
  /** Named in the command line, so that a sweep finds the process: the folder of the sandbox. */
  folder: string;
  /** Options of bubblewrap for the file system. */
  system: readonly string[];
  environment: Readonly<Record<string, string>>;
  cwd: string;
  argv: readonly string[];
  /** The user outside of the sandbox; null: the gateway's. */
  uid: number | null;
  joinFiles: readonly string[];
  /** Of `prlimit`. */
  limits: readonly string[];
  /** The filter of system calls; null: none. */
  filter: Buffer | null;
  /** Descriptors of the gateway that its children would have. */
  inherited: readonly number[];
  /** Whether the kernel has ended one of its processes for want of memory. */
  lacksMemory(): boolean;
}

/** Makes the kernel end it before the gateway when memory runs out, joins the groups, and starts the rest. */
const JOIN = `umask 022
ulimit -c 0
echo 600 > /proc/self/oom_score_adj
count=$1; shift
while [ "$count" -gt 0 ]; do echo $$ > "$1" || exit 1; shift; count=$((count - 1)); done
exec "$@"`;

/** The numbers of the descriptors after the standard ones. */
const [OPTIONS, STATUS, WORD, SECCOMP] = [3, 4, 5, 6];

/**
 * The gateway gives its word when bubblewrap has asked the kernel to end it with the gateway. If the gateway dies before, the input
 * ends and the command does not start.
 */
const AWAIT = `read -r word <&${WORD} || exit 1
exec ${WORD}<&-
exec "$@"`;

const NAMESPACES = [
  ...['--unshare-all', '--unshare-user', '--disable-userns', '--cap-drop', 'ALL'],
  ...['--uid', String(INSIDE_USER.uid), '--gid', String(INSIDE_USER.gid), '--hostname', 'sandbox'],
  ...['--die-with-parent', '--new-session', '--clearenv'],
];
/** Processes of a sandbox give way to those of the gateway. */
const NICE = ['nice', '-n', '5'];
const LONGEST_STATUS = 64 * 1024;
/** Exit codes after signals. */
const [KILLED, TOO_LARGE] = [128 + constants.signals.SIGKILL, 128 + constants.signals.SIGXFSZ];

/** A command whose namespaces exist. */
export interface Launched extends DriverExecution {
  /** The first of its namespace of processes, by its id outside; undefined before and after it exists. */
  firstProcess(): number | undefined;
}

export async function launch(options: Launch): Promise<Launched> {
  const pipes = await makePipes(options.pipeFolder);
  try {
    return start(options, pipes);
  } finally {
    for (const end of pipes.ends) closeSync(end);
  }
}

function start(options: Launch, pipes: OutputPipes): Launched {
  const { uid, joinFiles, folder, filter } = options;
  const become = uid === null ? [] : ['setpriv', '--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups'];
  const bounding = uid === null ? [] : ['--bounding-set=-all', '--inh-caps=-all', '--no-new-privs'];
  const args = [
    ...['-c', JOIN, 'sh', String(joinFiles.length), ...joinFiles, ...NICE, ...become, ...bounding],
    ...['bwrap', ...NAMESPACES, '--json-status-fd', String(STATUS)],
    ...(filter === null ? [] : ['--seccomp', String(SECCOMP)]),
    // Has no effect: the mark by which `bubblewrapsOf` finds the process.
    ...['--setenv', 'GATEHOUSE', `${folder}/`, '--unsetenv', 'GATEHOUSE'],
    ...['--args', String(OPTIONS), '--chdir', options.cwd, '--'],
    ...['prlimit', ...options.limits, 'sh', '-c', AWAIT, 'sh', ...options.argv],
  ];
  const nothing = openSync('/dev/null', 'r');
  const stdio: (number | 'pipe' | 'ignore')[] = ['pipe', ...pipes.ends, 'pipe', 'pipe', 'pipe', 'pipe'];
  // What is not replaced would reach the sandbox.
  for (const each of options.inherited) if (each > SECCOMP) stdio[each] = nothing;
  try {
    const child = spawn('/bin/sh', args, {
      stdio: Array.from(stdio, (each) => each ?? 'ignore'),
      // Of the programs outside. It can be read in the sandbox, as that of the first process.
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
      cwd: '/',
    });
    return new Process(child, pipes, options);
  } finally {
    closeSync(nothing);
  }
}

type OwnPipes = [stdin: Writable, null, null, options: Writable, status: Readable, word: Writable, calls: Writable];

class Process implements Launched {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly ended: Promise<Ending>;
  readonly #child: ChildProcess;
  readonly #word: Writable;
  #first: number | undefined;
  #reason: EndReason | undefined;
  #hasEnded = false;

  constructor(child: ChildProcess, pipes: OutputPipes, { system, environment, filter, lacksMemory }: Launch) {
    this.#child = child;
    const [stdin, , , options, status, word, calls] = child.stdio as unknown as OwnPipes;
    this.#word = word;
    this.stdin = stdin;
    this.stdout = pipes.stdout;
    this.stderr = pipes.stderr;
    for (const each of [stdin, this.stdout, this.stderr, options, word, calls]) each.on('error', () => {});
    const variables = Object.entries(environment).flatMap(([name, value]) => ['--setenv', name, value]);
    calls.end(filter ?? '');
    options.end(zeroTerminated([...variables, ...system]));
    const started = (pid: number) => {
      this.#first = pid;
      if (this.#reason === undefined) word.end('go\n');
    };
    const exited = new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    this.ended = Promise.all([readStatus(status, started), exited]).then(([code]) => {
      this.#hasEnded = true;
      return this.#ending(code, lacksMemory);
    });
  }

  firstProcess(): number | undefined {
    return this.#hasEnded ? undefined : this.#first;
  }

  signal(name: NodeJS.Signals): void {
    if (this.#hasEnded) return;
    if (name === 'SIGKILL') {
      this.end('exit');
      return;
    }
    // The first child of the first process is the command: everything ends with it.
    const command = this.#first === undefined ? undefined : childrenOf(this.#first)[0];
    if (command !== undefined) kill(command, name);
  }

  end(reason: EndReason): void {
    if (this.#hasEnded) return;
    this.#reason ??= reason;
    // Killed while it makes the namespaces, bubblewrap would leave a process that waits for it forever. Without the word the command
    // does not start.
    if (this.#first === undefined) this.#word.end();
    else {
      // The first process may not be tied to bubblewrap yet, so it would not end with it.
      if (childrenOf(this.#child.pid!).includes(this.#first)) kill(this.#first);
      this.#child.kill('SIGKILL');
    }
  }

  #ending(code: number | undefined, lacksMemory: () => boolean): Ending {
    if (this.#reason === 'exit') return { code: code ?? KILLED, reason: 'exit' };
    if (this.#reason !== undefined) return { code: null, reason: this.#reason };
    const wasKilled = code === undefined || code === KILLED;
    if (wasKilled && lacksMemory()) return { code: code ?? null, reason: 'memory' };
    if (code === TOO_LARGE) return { code, reason: 'disk' };
    return code === undefined ? { code: null, reason: 'lost' } : { code, reason: 'exit' };
  }
}

function zeroTerminated(words: readonly string[]): string {
  return words.map((word) => `${word}\0`).join('');
}

/** What bubblewrap reports: the id of the first process, and the exit code of the command if it ran. */
async function readStatus(status: Readable, started: (pid: number) => void): Promise<number | undefined> {
  let text = '';
  let code: number | undefined;
  try {
    for await (const chunk of status) {
      text += String(chunk);
      if (text.length > LONGEST_STATUS) break;
      const lines = text.split('\n');
      text = lines.pop()!;
      for (const line of lines) {
        const report = JSON.parse(line) as { 'child-pid'?: number; 'exit-code'?: number };
        if (report['child-pid'] !== undefined) started(report['child-pid']);
        code = report['exit-code'] ?? code;
      }
    }
  } catch {
    // Cut off by the end of the process.
  }
  return code;
}
