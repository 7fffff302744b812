/** What isolates sandboxes, behind one interface. `drivers.ts` lists them. */
import type { Clock } from '../base/clock.ts';
import type { SandboxesSettings } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { EgressProxy } from '../egress-proxy/index.ts';
import type { EndReason, Execution, Program, SandboxLimits, SandboxNetwork } from './sandbox.ts';

/** What drivers need of the gateway. */
export interface DriverParts {
  settings: SandboxesSettings;
  dataDir: string;
  /** The operator's own certificate authorities, in PEM. */
  extraCa: string | null;
  egressProxy: EgressProxy;
  clock: Clock;
  log: Log;
}

/** What a driver found on its machine, for the log and `gatehouse doctor`. */
export interface Examination {
  /** Name of the driver. */
  driver: string;
  /** What separates a sandbox from the gateway, in few words; null if no sandbox can be created. */
  isolation: string | null;
  problems: readonly DriverProblem[];
  /** Whether a later examination may differ, because the result depends on more than this machine. */
  mayChange?: boolean;
}

export interface DriverProblem {
  /** What is missing, and the consequence. */
  message: string;
  /** What the operator can do. */
  remedy: string;
}

/** Options that have been checked. */
export interface DriverOptions {
  id: string;
  owner: string;
  limits: SandboxLimits;
  reserveBytes: number;
  network: SandboxNetwork | null;
  programs: readonly Program[];
}

export interface DriverCommand {
  argv: readonly [string, ...string[]];
  cwd: string;
  environment: Readonly<Record<string, string>>;
  /** CPU time of one process; null: unlimited. */
  cpuSeconds: number | null;
}

/** The driver does not watch limits of time and output: its caller does, and calls `end`. */
export interface DriverExecution extends Execution {
  /** Ends all processes of the command; `ended` gives this reason. Does nothing after the end. */
  end(reason: EndReason): void;
}

/** A sandbox whose workspace exists and whose commands can start. */
export interface DriverSandbox {
  /** Whether its files exceed the limit, as far as the driver watches that. */
  readonly isFull?: boolean;
  exec(command: DriverCommand): Promise<DriverExecution>;
  /** Ends all commands; resolves when no process is left. */
  stop(): Promise<void>;
}

/** A workspace that exists. */
export interface SandboxRecord {
  id: string;
  owner: string;
  /** Whether a process of this gateway, or another one, runs it. */
  running: boolean;
}

export interface SandboxDriver {
  examine(): Promise<Examination>;
  /** @throws GatewayError 409 if another process runs a sandbox with this id */
  create(options: DriverOptions): Promise<DriverSandbox>;
  list(): Promise<SandboxRecord[]>;
  /** Removes a workspace whose sandbox does not run. Does nothing if there is none. */
  remove(id: string): Promise<void>;
  /** Ends what gateways that were killed have left; workspaces stay. @returns how many sandboxes it ended */
  sweep(): Promise<number>;
}
