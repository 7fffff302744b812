/** A sandbox whose pod runs. */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { DOOR_NAME, type OpenDoor, sandboxEnvironment } from '../../egress-proxy/index.ts';
import type { DriverCommand, DriverExecution, DriverSandbox } from '../driver.ts';
import { HOME, type Program, type SandboxLimits, WORKSPACE } from '../sandbox.ts';
import { Channel } from './channel.ts';
import type { Cluster } from './cluster.ts';
import { RunningCommand } from './command.ts';
import { OWN_FOLDER, POD_FILE } from './objects.ts';
import { PODS, type Pod } from './resources.ts';

const PROVE_MS = 60_000;
const MOST_OPEN_FILES = 8192;
/** Processes and threads of the gateway in the pod, more than there are. */
const OWN_PROCESSES = 64;
const BLOCK_BYTES = 512;
const MARK_BYTES = 16;
const LONGEST_ANSWER = 10_000;
const BUNDLE = `${OWN_FOLDER}/bundle.pem`;
/** What operations on files need in the image. */
const TOOLS = ['sh', 'node', 'cat', 'head', 'find', 'stat', 'chmod', 'mv', 'rm', 'mkdir', 'tar', 'gzip'];

interface SandboxParts {
  id: string;
  pod: string;
  cluster: Cluster;
  limits: SandboxLimits;
  programs: readonly Program[];
  /** The way out; null: none. */
  network: { bundle: string; key: string } | null;
  door: OpenDoor;
  clock: Clock;
  /** @throws GatewayError if another process has taken the sandbox over */
  assertHeld(): Promise<void>;
  /** Stops the pod and gives back what outlives it. */
  release(): Promise<void>;
}

export class KubernetesSandbox implements DriverSandbox {
  readonly #parts: SandboxParts;
  readonly #running = new Set<DriverExecution>();
  readonly #mark = randomBytes(MARK_BYTES).toString('hex');
  #channel: Promise<Channel> | undefined;
  #isStopped = false;
  #restarts = 0;

  constructor(parts: SandboxParts) {
    this.#parts = parts;
  }

  async exec(command: DriverCommand): Promise<DriverExecution> {
    await this.#parts.assertHeld();
    return this.#start(command);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const execution of this.#running) execution.end('stopped');
    await Promise.all([...this.#running].map(({ ended }) => ended));
    (await this.#channel?.catch(() => undefined))?.end();
    await this.#parts.release();
  }

  /** Gives the pod its way out, and checks that it has what it needs and reaches nothing else. @throws GatewayError 503 */
  async prove(): Promise<void> {
    const { network, door, programs } = this.#parts;
    const { host, port, forbiddenPort, certificate } = door;
    if (network !== null) {
      const way = { host, port, name: DOOR_NAME, certificate, key: network.key };
      await this.#writeOwn('bundle.pem', network.bundle);
      await this.#writeOwn('way.json', JSON.stringify(way));
    }
    const checks = {
      programs: programs.map(({ name }) => name),
      tools: TOOLS,
      folders: [WORKSPACE, HOME, '/tmp'],
      closed: [{ host, port: forbiddenPort }, ...(network === null ? [{ host, port }] : [])],
      hasWay: network !== null,
    };
    const problems = await this.#own(['node', POD_FILE, 'check', JSON.stringify(checks)]);
    if (problems === '[]') return;
    throw this.#failed(readable(problems));
  }

  async #writeOwn(name: string, content: string): Promise<void> {
    await this.#own(['sh', '-c', `cat > ${OWN_FOLDER}/${name}`], content);
  }

  /** Runs a program of the gateway's. @returns its output */
  async #own(argv: [string, ...string[]], input = ''): Promise<string> {
    const execution = await this.#start({ argv, cwd: '/tmp', environment: {}, cpuSeconds: null });
    const timer = this.#parts.clock.timer(PROVE_MS, () => execution.end('time'));
    execution.stdin.end(input);
    const [output, errors, { code, reason }] = await Promise.all([
      textOf(execution.stdout),
      textOf(execution.stderr),
      execution.ended,
    ]);
    timer.cancel();
    if (code === 0) return output;
    throw this.#failed(errors.trim().slice(0, 500) || reason);
  }

  #failed(why: string): GatewayError {
    const message = `The sandbox ${this.#parts.id} cannot start: ${why}.`;
    return new GatewayError('server', message, { status: 503, metadata: { retryable: false } });
  }

  async #start({ argv, cwd, environment, cpuSeconds }: DriverCommand): Promise<DriverExecution> {
    const { clock, network, programs, limits } = this.#parts;
    if (this.#isStopped) throw new GatewayError('invalid_request', 'The sandbox was stopped.', { status: 409 });
    const channel = await this.#connection();
    const command = {
      ...{ argv, cwd },
      environment: {
        ...{ PATH: searchPath(programs), HOME, USER: 'sandbox', LANG: 'C.UTF-8', TERM: 'dumb' },
        ...(network === null ? {} : sandboxEnvironment(BUNDLE)),
        ...environment,
      },
      limits: {
        ...{ c: 0, f: Math.ceil(limits.diskBytes / BLOCK_BYTES), n: MOST_OPEN_FILES },
        // Bash calls it -u, dash and BusyBox -p. Either shell refuses the other option, or the value for it.
        ...{ u: limits.processes + OWN_PROCESSES, p: limits.processes + OWN_PROCESSES },
        ...(cpuSeconds === null ? {} : { t: cpuSeconds }),
      },
    };
    const execution = new RunningCommand(channel, command, () => this.#lackedMemory(), clock);
    this.#running.add(execution);
    void execution.ended.then(() => this.#running.delete(execution));
    if (this.#isStopped) execution.end('stopped');
    return execution;
  }

  /** All commands share it. After it broke, the next command opens another one. */
  async #connection(): Promise<Channel> {
    const { cluster, pod, clock } = this.#parts;
    const known = await this.#channel?.catch(() => undefined);
    if (known?.isClosed === false) return known;
    const mark = { text: this.#mark, isNew: this.#channel === undefined };
    this.#channel = Channel.open(cluster, pod, clock, mark);
    return this.#channel;
  }

  /** Whether the container was started again, since this was asked last, because it had no memory left. */
  async #lackedMemory(): Promise<boolean> {
    const pod = await this.#parts.cluster.find<Pod>(PODS, this.#parts.pod).catch(() => undefined);
    const [status] = pod?.status?.containerStatuses ?? [];
    const before = this.#restarts;
    this.#restarts = status?.restartCount ?? before;
    return this.#restarts > before && status?.lastState?.terminated?.reason === 'OOMKilled';
  }
}

/** What the image brings, then its programs. */
function searchPath(programs: readonly Program[]): string {
  const brought = programs.flatMap(({ name }) => [`/opt/${name}/bin`, `/opt/${name}`]);
  const usual = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  return [...usual, ...brought, '/opt/gatehouse/bin'].join(':');
}

/** The problems that `pod.ts check` found. */
function readable(text: string): string {
  try {
    return (JSON.parse(text) as string[]).join('; ').slice(0, 500);
  } catch {
    return 'its check gave no answer';
  }
}

async function textOf(stream: DriverExecution['stdout']): Promise<string> {
  let text = '';
  for await (const chunk of stream) text = (text + String(chunk)).slice(0, LONGEST_ANSWER);
  return text;
}
