/**
 * What the gateway does with a sandbox, whatever runs it. Paths are those inside the sandbox: it may run on another machine.
 *
 * Everything that comes out of a sandbox is untrusted: output, exit codes, file names, contents.
 */
import type { Readable, Writable } from 'node:stream';
import type { Blob } from '../blobs/index.ts';
import type { ModelCall, ProxiedSandbox, RefusalReport } from '../egress-proxy/index.ts';

/** The folder for files. It lasts until the sandbox is destroyed. */
export const WORKSPACE = '/workspace';
/** `HOME`. It lasts like the workspace and counts towards the same limits. */
export const HOME = '/home/sandbox';

/** Bounds of one sandbox. Those of the settings are the defaults and the most that can be had. */
export interface SandboxLimits {
  memoryBytes: number;
  /** Processes and threads that exist at once. */
  processes: number;
  /** CPUs that may be busy at once, with fractions. */
  cpus: number;
  /** Workspace, home and `/tmp` together; also the largest size of a file. */
  diskBytes: number;
  /** Files and folders there. */
  files: number;
}

export interface SandboxOptions {
  /**
   * Names the sandbox and its workspace: 1 to 40 lower-case letters, digits and dashes, a letter first. Creating it again after
   * `stop` continues with the same workspace.
   */
  id: string;
  /** What it belongs to, such as `intern 0198...`, so that `Sandboxes.list` finds what outlived its owner. */
  owner: string;
  limits?: Partial<SandboxLimits>;
  /**
   * How many bytes commands may write in total beyond `diskBytes`, so that they can still work while they remove files.
   * Default 0: then they can only remove files. Without effect where the limit is that of a volume.
   */
  reserveBytes?: number;
  /** Absent: no network at all. */
  network?: SandboxNetwork;
  /**
   * Variables of every command. They are shown to everything in the sandbox, so secrets are placeholders here. `PATH`, `HOME` and
   * those that the proxy needs are set by the sandbox, which refuses them here (`isReservedVariable`).
   */
  environment?: Readonly<Record<string, string>>;
  programs?: readonly Program[];
}

/** The way out of a sandbox: its own socket of the egress proxy, and nothing else. */
export interface SandboxNetwork {
  /** Of the authority that `load` returns, in PEM. Programs in the sandbox trust it. */
  certificate: string;
  /** Secrets and allowed domains; called again when the proxy is restarted (`EgressProxy.open`). */
  load: ProxiedSandbox['load'];
  /** For the audit log. */
  onRefused(refusal: RefusalReport): void;
  onCalled?(call: ModelCall): void;
}

/** A program that the sandbox does not have: a file or folder of the gateway's machine, read-only at `/opt/NAME`. */
export interface Program {
  /** Lower-case letters, digits and dashes. */
  name: string;
  /** Absolute. A driver for another machine expects the program in its image instead. */
  path: string;
}

export interface Command {
  /** The program, searched for in `PATH`, and its arguments. */
  argv: readonly [string, ...string[]];
  /** Absolute; default `WORKSPACE`. */
  cwd?: string;
  /** In addition to that of the sandbox. */
  environment?: Readonly<Record<string, string>>;
  /** When it is ended; null: never. Default: the limit of the settings (`command_time`). */
  timeoutMs?: number | null;
  /** Bytes of both outputs together, after which it is ended; null: unlimited. Default: `output_bytes` of the settings. */
  outputBytes?: number | null;
}

/** A running command. It ends, and all processes that it started with it, when its first process ends. */
export interface Execution {
  /** Writing to it after the command closed it fails silently. */
  readonly stdin: Writable;
  /** Must be read: a command waits while nobody reads its output. */
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Sends a signal to the first process; `SIGKILL` ends all. Does nothing after the end. */
  signal(name: 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGKILL'): void;
  /** Never rejects. Output may still be unread by then. */
  readonly ended: Promise<Ending>;
}

export interface Ending {
  /** Of its first process; 128 and the number of the signal that ended it, as in a shell. null if it was ended by a limit. */
  code: number | null;
  reason: EndReason;
}

/**
 * - `exit`: ended by itself, or by a signal from within or of `Execution.signal`
 * - `time`, `output`, `memory`, `disk`: ended by that limit
 * - `stopped`: the sandbox was stopped or destroyed
 * - `lost`: the connection to the sandbox broke, or it could not start the command
 */
export type EndReason = 'exit' | 'time' | 'output' | 'memory' | 'disk' | 'stopped' | 'lost';

/** Something in a folder. `name` is one segment of a path; it may contain any character but `/` and zero. */
export interface Entry {
  name: string;
  kind: 'file' | 'folder' | 'link' | 'other';
  /** Of a file, otherwise 0. */
  bytes: number;
  /** When it was changed, in milliseconds since 1970. */
  changedAt: number;
}

/**
 * A created sandbox. All operations reject with a GatewayError: 503 if the sandbox cannot be used, and 409 after it was stopped.
 * Those on files resolve paths inside the sandbox, so a link leads nowhere that its own code could not go.
 */
export interface Sandbox {
  readonly id: string;
  readonly limits: SandboxLimits;
  /** Whether `diskBytes` was exceeded at the last check. */
  readonly isFull: boolean;
  /** Starts a command; several may run at once. Resolves when it is on its way. */
  exec(command: Command): Promise<Execution>;
  /**
   * The content of a file.
   * @param path absolute, or below the workspace
   * @throws GatewayError 404 if it does not exist, 400 if it is not a file, 413 if it has more bytes
   */
  readFile(path: string, mostBytes: number): Promise<Buffer>;
  /**
   * Creates or replaces a file and the folders above it, with content that arrives completely or not at all.
   * @throws GatewayError 400 if the path cannot be written, 413 if the limits of the sandbox are reached
   */
  writeFile(path: string, content: Buffer | string): Promise<void>;
  /**
   * The entries of a folder, sorted by name, links not followed.
   * @throws GatewayError 404 if it does not exist, 400 if it is not a folder, 413 if it has more entries than `most`
   */
  listFiles(path: string, most: number): Promise<Entry[]>;
  /**
   * Stores workspace and home as a blob. Commands should not run meanwhile: a file that changes is stored as it is read.
   * The caller keeps the blob, or it is removed after a day (`Blobs.keep`).
   * @throws GatewayError 413 if it is larger than `diskBytes`
   */
  snapshot(): Promise<Blob>;
  /** Replaces workspace and home by those of a snapshot. If it fails, they are incomplete. */
  restore(blobId: string): Promise<void>;
  /** Ends all commands and the sandbox; workspace and home stay. */
  stop(): Promise<void>;
  /** Ends all commands, and removes workspace and home. */
  destroy(): Promise<void>;
}
