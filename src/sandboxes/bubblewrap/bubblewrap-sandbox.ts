/** A sandbox of bubblewrap: its commands, its group, its disk. */
import { readdirSync, readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import type { Clock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { SANDBOX_PROXY_PORT, SOCKET_NAME, SYSTEM_BUNDLE, sandboxEnvironment } from '../../egress-proxy/index.ts';
import type { DriverCommand, DriverExecution, DriverSandbox } from '../driver.ts';
import { HOME, type Program, type SandboxLimits, WORKSPACE } from '../sandbox.ts';
import { DiskWatch } from './disk-watch.ts';
import type { SandboxFolder } from './folders.ts';
import type { Group } from './groups.ts';
import { type Launched, launch } from './launch.ts';
import { gone, treeOf } from './processes.ts';
import { EGRESS_FOLDER, type NetworkFiles, OWN, searchPath, systemOptions } from './system.ts';

const GONE_MS = 10_000;
const MOST_OPEN_FILES = 8192;
const PROVE_MS = 30_000;
const UNCOVER = ['chmod', '-R', 'u+rwX', WORKSPACE, HOME, '/tmp'] as const;

interface SandboxParts {
  id: string;
  folder: SandboxFolder;
  limits: SandboxLimits;
  reserveBytes: number;
  uid: number | null;
  group: Group | null;
  countsProcesses: boolean;
  programs: readonly Program[];
  network: NetworkFiles | null;
  filter: Buffer | null;
  inherited: readonly number[];
  clock: Clock;
  /** Gives back what outlives the commands. */
  release(): Promise<void>;
}

export class BubblewrapSandbox implements DriverSandbox {
  readonly #parts: SandboxParts;
  readonly #running = new Set<Launched>();
  readonly #disk: DiskWatch;
  #isStopped = false;

  constructor(parts: SandboxParts) {
    this.#parts = parts;
    this.#disk = new DiskWatch(parts, parts.clock, {
      processes: () => this.#firstProcesses().flatMap(treeOf),
      uncover: () => this.#uncover(),
      exceeded: () => this.#endAll('disk'),
    });
  }

  get isFull(): boolean {
    return this.#disk.isFull;
  }

  async exec(command: DriverCommand): Promise<DriverExecution> {
    if (this.#disk.isFull || this.#disk.isStuck) await this.#disk.count();
    if (this.#disk.isStuck) {
      const message = `The sandbox ${this.#parts.id} has exceeded its disk limit too often. Destroy it.`;
      throw new GatewayError('payload_too_large', message);
    }
    return this.#launch(command);
  }

  /** Runs a command that does nothing. @throws GatewayError 503 with what bubblewrap says, 413 if the disk is too full */
  async prove(): Promise<void> {
    // Commands of this sandbox are not charged for files that an earlier sandbox left, which may exceed the limit.
    const { workspace, home } = this.#parts.folder;
    if ([workspace, home].some((folder) => readdirSync(folder).length > 0)) await this.#disk.count();
    const execution = await this.#launch({ argv: ['true'], cwd: WORKSPACE, environment: {}, cpuSeconds: null });
    const timer = this.#parts.clock.timer(PROVE_MS, () => execution.end('time'));
    execution.stdin.end();
    execution.stdout.resume();
    const [errors, { code, reason }] = await Promise.all([text(execution.stderr), execution.ended]);
    timer.cancel();
    if (code === 0) return;
    if (reason === 'disk') {
      throw new GatewayError(
        'payload_too_large',
        `The disk of the sandbox ${this.#parts.id} is full, with its reserve.`,
      );
    }
    const why = errors.trim().slice(0, 500) || reason;
    throw new GatewayError('server', `The sandbox ${this.#parts.id} cannot start: ${why}`, { status: 503 });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.endAll();
    await this.#parts.release();
  }

  /** Resolves when no process is left. */
  async endAll(): Promise<void> {
    const { group, clock } = this.#parts;
    const first = this.#firstProcesses();
    const running = [...this.#running];
    this.#endAll('stopped');
    await Promise.all(running.map(({ ended }) => ended));
    await Promise.all(first.map((pid) => gone(pid, clock, GONE_MS)));
    await group?.remove();
  }

  #endAll(reason: 'stopped' | 'disk'): void {
    for (const execution of this.#running) execution.end(reason);
  }

  #firstProcesses(): number[] {
    return [...this.#running].flatMap((execution) => execution.firstProcess() ?? []);
  }

  async #launch({ argv, cwd, environment, cpuSeconds }: DriverCommand): Promise<Launched> {
    if (this.#isStopped) throw new GatewayError('invalid_request', 'The sandbox was stopped.', { status: 409 });
    const { folder, uid, group, programs, network, filter, inherited } = this.#parts;
    const forwarded = network === null ? argv : [...forwarderOf(network), ...argv];
    const killsBefore = group?.memoryKills() ?? 0;
    const execution = await launch({
      pipeFolder: folder.folder,
      ...{ folder: folder.folder, cwd, uid, filter, inherited, argv: forwarded },
      system: systemOptions({ ...folder, programs, network }),
      environment: {
        ...{ PATH: searchPath(programs, network !== null), HOME, USER: 'sandbox', LANG: 'C.UTF-8', TERM: 'dumb' },
        ...(network === null ? {} : sandboxEnvironment(SYSTEM_BUNDLE)),
        ...environment,
      },
      joinFiles: group?.joinFiles ?? [],
      limits: this.#limits(cpuSeconds),
      lacksMemory: () => (group?.memoryKills() ?? 0) > killsBefore,
    });
    this.#running.add(execution);
    if (this.#isStopped) execution.end('stopped');
    const ended = this.#disk.begin();
    void execution.ended.then(() => {
      this.#running.delete(execution);
      ended();
    });
    return execution;
  }

  /** Where there is no group, they bound each process. */
  #limits(cpuSeconds: number | null): string[] {
    const { limits, reserveBytes, group, countsProcesses } = this.#parts;
    const wanted: Record<string, number | null> = {
      core: 0,
      // Without a reserve, a full sandbox can only remove files.
      fsize: this.#disk.isFull && reserveBytes === 0 ? 0 : limits.diskBytes,
      nofile: MOST_OPEN_FILES,
      nproc: countsProcesses ? limits.processes : null,
      data: group === null ? limits.memoryBytes : null,
      cpu: cpuSeconds,
    };
    const own = readFileSync('/proc/self/limits', 'utf8');
    return Object.entries(wanted).flatMap(([name, value]) => {
      return value === null ? [] : [`--${name}=${Math.min(value, hardLimit(name, own))}`];
    });
  }

  async #uncover(): Promise<void> {
    const execution = await this.#launch({ argv: [...UNCOVER], cwd: WORKSPACE, environment: {}, cpuSeconds: null });
    execution.stdin.end();
    execution.stdout.resume();
    execution.stderr.resume();
    await execution.ended;
  }
}

function forwarderOf({ forwarder }: NetworkFiles): string[] {
  const name = forwarder.slice(forwarder.lastIndexOf('/') + 1);
  return [`${OWN}/bin/node`, `${OWN}/${name}`, `${EGRESS_FOLDER}/${SOCKET_NAME}`, String(SANDBOX_PROXY_PORT)];
}

const LIMIT_NAMES: Readonly<Record<string, string>> = {
  core: 'Max core file size',
  fsize: 'Max file size',
  nofile: 'Max open files',
  nproc: 'Max processes',
  data: 'Max data size',
  cpu: 'Max cpu time',
};

/** Of the gateway; nothing that it starts can have more. @param own its limits, as the kernel lists them */
function hardLimit(name: string, own: string): number {
  const line = own.split('\n').find((each) => each.startsWith(LIMIT_NAMES[name]!));
  const [, hard = 'unlimited'] = line?.slice(LIMIT_NAMES[name]!.length).trim().split(/\s+/) ?? [];
  return hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard);
}
