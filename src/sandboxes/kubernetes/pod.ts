/**
 * The gateway's program in the pod of a sandbox. It runs as the same user as the sandbox's code, so its output is not trusted. The file
 * imports nothing of the project: the pod gets its text.
 *
 * - `init`: the first process of the container. Passes connections to 127.0.0.1:3128 on to the egress proxy.
 * - `serve`: runs commands, for the gateway at the other end of its standard input and output.
 * - `check`: looks at the pod, before the first command.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { constants } from 'node:os';
import path from 'node:path';
import tls from 'node:tls';

/** Written by the gateway. */
interface Way {
  host: string;
  port: number;
  name: string;
  certificate: string;
  key: string;
}

/** The first frame of a command. */
interface PodCommand {
  argv: [string, ...string[]];
  cwd: string;
  environment: Record<string, string>;
  /** Of `ulimit`, by option. */
  limits: Record<string, number>;
}

const FOLDER = import.meta.dirname;
const WAY = path.join(FOLDER, 'way.json');
const PROXY_PORT = 3128;

// init
/** While the proxy is restarted, connections are tried again. */
const RETRY_MS = 100;
const MOST_RETRIES = 50;

function init(): void {
  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    client.on('error', () => client.destroy());
    forward(client, 0);
  });
  server.on('error', (error) => {
    console.error(`cannot listen on 127.0.0.1:${PROXY_PORT}: ${error.message}`);
    process.exit(1);
  });
  server.listen(PROXY_PORT, '127.0.0.1', () => writeFileSync(path.join(FOLDER, 'ready'), ''));
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0));
}

function forward(client: net.Socket, retries: number): void {
  const way = readWay();
  if (way === undefined) return void client.destroy();
  const proxy = connect(way);
  const fail = () => {
    proxy.destroy();
    if (retries >= MOST_RETRIES || client.destroyed) client.destroy();
    else setTimeout(() => forward(client, retries + 1), RETRY_MS);
  };
  proxy.once('error', fail);
  proxy.once('secureConnect', () => {
    proxy.off('error', fail);
    proxy.on('error', () => client.destroy());
    client.once('close', () => proxy.destroy());
    proxy.once('close', () => client.destroy());
    proxy.write(`${way.key}\n`);
    client.pipe(proxy);
    proxy.pipe(client);
  });
}

function connect({ host, port, name, certificate }: Way): tls.TLSSocket {
  return tls.connect({ host, port, servername: name, ca: certificate, allowHalfOpen: true } as tls.ConnectionOptions);
}

function readWay(): Way | undefined {
  try {
    return JSON.parse(readFileSync(WAY, 'utf8')) as Way;
  } catch {
    return undefined;
  }
}

// serve
/** In both directions: a letter, the number of a command, the length of the content, the content. */
const HEAD_BYTES = 9;
/** What either side sends of one command before the other has taken it. */
const WINDOW_BYTES = 256 * 1024;
const LONGEST_PIECE = 64 * 1024;
/** The gateway pings every 10 s. */
const SILENCE_MS = 60_000;
const MOST_SWEEPS = 100;
const LINGER_MS = 500;
/** Of a folder: may be entered, may be written. */
const [EXECUTE, WRITE] = [1, 2];
const MARK = 'GATEHOUSE_COMMAND';
const OOM_FILE = '/sys/fs/cgroup/memory.events';
/** The limit of processes counts those of a user. Without users of its own, a pod would share it with all pods of the node. */
const hasOwnUsers = !textOf('/proc/self/uid_map').includes('4294967295');

/** @param mark by which the gateway knows the pod @param isNew whether this is its first connection */
function serve(mark: string, isNew: boolean): void {
  const file = path.join(FOLDER, 'mark');
  if (isNew) writeFileSync(file, mark);
  else if (!existsSync(file) || readFileSync(file, 'utf8') !== mark) {
    console.error('the pod of the sandbox was replaced');
    process.exit(1);
  }
  const commands = new Map<number, Run>();
  const abandon = () => {
    // The gateway has disconnected.
    for (const command of commands.values()) command.endAll();
    process.exit(0);
  };
  let silence = setTimeout(abandon, SILENCE_MS);
  process.stdin.once('end', abandon);
  process.stdin.once('error', abandon);
  process.stdout.once('error', abandon);
  process.on('SIGHUP', abandon);
  readFrames((type, id, content) => {
    clearTimeout(silence);
    silence = setTimeout(abandon, SILENCE_MS);
    if (type === 'C')
      commands.set(id, new Run(id, JSON.parse(content.toString()) as PodCommand, () => commands.delete(id)));
    else commands.get(id)?.receive(type, content);
  });
}

/** One command. */
class Run {
  readonly #id: number;
  readonly #forget: () => void;
  readonly #mark = `${process.pid}-${Math.random().toString(36).slice(2)}`;
  readonly #kills = oomKills();
  /** What may not be sent yet, and at last the report. */
  readonly #queue: [type: string, content: Buffer][] = [];
  #credit = WINDOW_BYTES;
  #command: ChildProcess | undefined;
  #isOver = false;

  constructor(id: number, command: PodCommand, forget: () => void) {
    this.#id = id;
    this.#forget = forget;
    this.#start(command);
  }

  receive(type: string, content: Buffer): void {
    const { stdin } = this.#command ?? {};
    if (type === 'I') {
      const taken = () => send('W', this.#id, String(content.length));
      // A command that has closed its input takes everything.
      if (stdin?.writable) stdin.write(content, taken);
      else taken();
    } else if (type === 'E') stdin?.end();
    else if (type === 'W') {
      this.#credit += Number(content);
      this.#flush();
    } else if (type === 'S') this.#signal(content.toString() as NodeJS.Signals);
  }

  /**
   * Ends all processes of the command: its session, its descendants, and what has its mark in the environment. A process that has left
   * all of these on purpose stays until the sandbox is stopped. Whole groups, since a process can be replaced faster than it is found.
   */
  endAll(): void {
    const first = this.#command?.pid;
    if (first !== undefined) kill(-first);
    for (let sweep = 0; sweep < MOST_SWEEPS; sweep += 1) {
      const found = processesOf(this.#mark, first);
      if (found.length === 0) return;
      for (const each of found) kill(each);
    }
  }

  #start({ argv, cwd, environment, limits }: PodCommand): void {
    try {
      if (!statSync(cwd).isDirectory()) throw new Error(`${cwd} is not a folder`);
      accessSync(cwd, EXECUTE);
    } catch (error) {
      return void this.#lost(`cannot start in this folder: ${(error as Error).message}`);
    }
    const flags = Object.keys(limits).filter((flag) => hasOwnUsers || !'up'.includes(flag));
    const script = [...flags.map((flag) => `ulimit -${flag} ${limits[flag]} 2>/dev/null`), 'exec "$@"'].join('\n');
    const env = { ...environment, [MARK]: this.#mark };
    const child = spawn('/bin/sh', ['-c', script, 'sh', ...argv], { cwd, env, detached: true });
    this.#command = child;
    for (const stream of child.stdio) stream?.on('error', () => {});
    child.stdout.on('data', (chunk: Buffer) => this.#pass('O', chunk));
    child.stderr.on('data', (chunk: Buffer) => this.#pass('X', chunk));
    child.once('error', (error) => this.#lost(`cannot start: ${error.message}`));
    let ending: object | undefined;
    child.once('exit', (code, signal) => {
      ending = { code: code ?? 128 + constants.signals[signal!] };
      this.endAll();
      this.#close(child);
    });
    child.once('close', () => this.#over(ending ?? { lost: true }));
  }

  /** Gives up outputs that escaped processes keep open. */
  #close(child: ChildProcess): void {
    setTimeout(() => {
      if (this.#isOver) return;
      // What was written arrives first.
      if (this.#queue.length > 0) return void this.#close(child);
      for (const output of [child.stdin, child.stdout, child.stderr]) output?.destroy();
    }, LINGER_MS);
  }

  #signal(name: NodeJS.Signals): void {
    if (name === 'SIGKILL') this.endAll();
    else this.#command?.kill(name);
  }

  #lost(problem: string): void {
    this.#pass('X', Buffer.from(`${problem}\n`));
    this.#over({ lost: true });
  }

  #over(report: object): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#queue.push(['D', Buffer.from(JSON.stringify({ ...report, lacksMemory: oomKills() > this.#kills }))]);
    this.#flush();
  }

  /** A command waits while the gateway does not read. */
  #pass(type: string, chunk: Buffer): void {
    this.#queue.push([type, chunk]);
    this.#flush();
  }

  #flush(): void {
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      const [type, content] = next;
      const piece = type === 'D' ? content : content.subarray(0, Math.min(this.#credit, LONGEST_PIECE));
      if (piece.length === 0) break;
      send(type, this.#id, piece);
      if (type === 'D') this.#forget();
      else this.#credit -= piece.length;
      if (piece.length < content.length) next[1] = content.subarray(piece.length);
      else this.#queue.shift();
    }
    for (const output of [this.#command?.stdout, this.#command?.stderr]) {
      if (this.#queue.length > 0) output?.pause();
      else output?.resume();
    }
  }
}

function readFrames(receive: (type: string, id: number, content: Buffer) => void): void {
  let rest = Buffer.alloc(0);
  process.stdin.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + rest.readUInt32BE(5);
      if (rest.length < end) return;
      receive(String.fromCharCode(rest[0]!), rest.readUInt32BE(1), rest.subarray(HEAD_BYTES, end));
      rest = rest.subarray(end);
    }
  });
}

function send(type: string, id: number, content: Buffer | string): void {
  const bytes = Buffer.from(content as string);
  const head = Buffer.alloc(HEAD_BYTES);
  head.write(type, 'latin1');
  head.writeUInt32BE(id, 1);
  head.writeUInt32BE(bytes.length, 5);
  process.stdout.write(Buffer.concat([head, bytes]));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

/** How many processes the kernel has ended for want of memory, in the whole pod. */
function oomKills(): number {
  return Number(/^oom_kill (\d+)$/m.exec(textOf(OOM_FILE))?.[1] ?? 0);
}

/** @param each a process, or a group as a negative number */
function kill(each: number): void {
  try {
    process.kill(each, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** Processes and their groups, for `kill`. */
function processesOf(mark: string, first: number | undefined): number[] {
  const known = new Map<number, { parent: number; group: number; session: number }>();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? textOf(`/proc/${name}/stat`) : '';
    // The program name is in parentheses and may contain anything.
    const [state, parent, group, session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (session === undefined || state === 'Z' || state === 'X') continue;
    known.set(Number(name), { parent: Number(parent), group: Number(group), session: Number(session) });
  }
  known.delete(process.pid);
  const descends = (pid: number): boolean => {
    for (let each: number | undefined = pid; each !== undefined; each = known.get(each)?.parent) {
      if (each === first) return true;
    }
    return false;
  };
  return [...known].flatMap(([pid, { group, session }]) => {
    const isFound = (first !== undefined && (session === first || descends(pid))) || hasMark(pid, mark);
    return !isFound ? [] : group > 1 ? [-group, pid] : [pid];
  });
}

function hasMark(pid: number, mark: string): boolean {
  return textOf(`/proc/${pid}/environ`).split('\0').includes(`${MARK}=${mark}`);
}

// check
interface Checks {
  programs: string[];
  tools: string[];
  folders: string[];
  /** Which must not be reached. */
  closed: { host: string; port: number }[];
  /** Whether the proxy must be reached. */
  hasWay: boolean;
}

const ATTEMPT_MS = 2_000;
/** Some networks apply their policies a moment after the start of a pod. */
const SETTLE_MS = 5_000;

async function check({ programs, tools, folders, closed, hasWay }: Checks): Promise<void> {
  const found = (process.env['PATH'] ?? '').split(':');
  const problems = [
    ...programs.filter((name) => !existsSync(`/opt/${name}`)).map((name) => `the image has no /opt/${name}`),
    ...tools
      .filter((name) => !found.some((each) => existsSync(`${each}/${name}`)))
      .map((name) => `the image has no ${name}`),
    ...folders.filter((each) => !isWritable(each)).map((each) => `${each} cannot be written`),
  ];
  const narrow = closed.map(async ({ host, port }) => {
    const isOpen = async () => opened(net.connect({ host, port }), 'connect');
    if (!(await settled(async () => !(await isOpen()))))
      problems.push(`${host}:${port} can be reached, but network policies must prevent that`);
  });
  const reached = async () => {
    const way = readWay();
    return way !== undefined && opened(connect(way), 'secureConnect');
  };
  await Promise.all(narrow);
  if (hasWay && !(await settled(reached))) problems.push('the egress proxy of the gateway cannot be reached');
  process.stdout.write(JSON.stringify(problems));
}

async function settled(holds: () => Promise<boolean>): Promise<boolean> {
  const until = performance.now() + SETTLE_MS;
  while (!(await holds())) {
    if (performance.now() > until) return false;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return true;
}

function opened(socket: net.Socket, event: string): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (is: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(is);
    };
    const timer = setTimeout(() => finish(false), ATTEMPT_MS);
    socket.once(event, () => finish(true));
    socket.on('error', () => finish(false));
  });
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, WRITE);
    return true;
  } catch {
    return false;
  }
}

const [mode, options = '', state] = process.argv.slice(2);
if (mode === 'init') init();
else if (mode === 'serve') serve(options, state === 'new');
else if (mode === 'check') await check(JSON.parse(options) as Checks);
else process.exit(64);
