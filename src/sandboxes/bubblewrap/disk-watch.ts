/**
 * Watches what the folders of a sandbox take on the disk, while commands run. Nothing in an ordinary file system bounds a folder, so
 * this is a watch, not a wall: a command can exceed the limit by what it writes until the next look, a quarter of a second later.
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Clock, Timer } from '../../base/clock.ts';
import type { SandboxLimits } from '../sandbox.ts';
import type { SandboxFolder } from './folders.ts';

const execFileAsync = promisify(execFile);

const LOOK_MS = 250;
/** The folders are counted at least this often, even if the disk seems to be unchanged. */
const LONGEST_MS = 30_000;
/** Counting may take this share of the time. */
const COUNTING_SHARE = 0.1;
const COUNT_TIMEOUT_MS = 60_000;
/** What stays free on the disk, whatever the limits are: the gateway needs it. */
const RESERVE_BYTES = 256 * 1024 * 1024;
/**
 * Commands of a sandbox with too many files, or with a reserve, may remove some. After this many that have made more instead, no
 * command may start.
 */
const MOST_STRIKES = 3;

interface Usage {
  bytes: number;
  files: number;
}

interface Watched {
  folder: SandboxFolder;
  limits: Pick<SandboxLimits, 'diskBytes' | 'files'>;
  /** What may be written beyond what there was when the sandbox became full. */
  reserveBytes: number;
}

/** In the folder of a full sandbox: how many bytes it had then. It outlives the process, so that the reserve is given once. */
const FULL_FILE = 'full';

interface WatchedSandbox {
  /** All that run now, by their ids outside. */
  processes(): number[];
  /** Lets the gateway read all folders, where it is not root. */
  uncover(): Promise<void>;
  /** Ends the commands. */
  exceeded(): void;
}

export class DiskWatch {
  readonly #folder: SandboxFolder;
  readonly #limits: Watched['limits'];
  readonly #reserveBytes: number;
  readonly #clock: Clock;
  readonly #sandbox: WatchedSandbox;
  #timer: Timer | undefined;
  #commands = 0;
  #usage: Usage = { bytes: 0, files: 0 };
  /** Where the limit is now: higher while a sandbox that exceeded it is cleaned up. */
  #allowed: Usage;
  #freeBytes = 0;
  #strikes = 0;
  #nextCountAt = Number.POSITIVE_INFINITY;
  #intervalMs = LOOK_MS;
  #counting: Promise<void> | undefined;

  constructor({ folder, limits, reserveBytes }: Watched, clock: Clock, sandbox: WatchedSandbox) {
    this.#folder = folder;
    this.#limits = limits;
    this.#reserveBytes = reserveBytes;
    this.#clock = clock;
    this.#sandbox = sandbox;
    this.#allowed = { bytes: limits.diskBytes, files: limits.files };
  }

  /** Whether nothing more may be written. */
  get isFull(): boolean {
    return this.#usage.bytes > this.#limits.diskBytes;
  }

  /** Whether no command may start, because they only make more files. */
  get isStuck(): boolean {
    return this.#strikes >= MOST_STRIKES;
  }

  /** Counts now. */
  async count(): Promise<void> {
    this.#counting ??= this.#countOnce().finally(() => {
      this.#counting = undefined;
    });
    await this.#counting;
  }

  /** A command starts. @returns what to call at its end */
  begin(): () => void {
    if (this.#commands === 0) this.#allow();
    this.#commands += 1;
    this.#intervalMs = LOOK_MS;
    this.#nextCountAt = Math.min(this.#nextCountAt, this.#clock.monotonic() + LOOK_MS);
    this.#timer ??= this.#clock.timer(LOOK_MS, () => void this.#look());
    return () => {
      this.#commands -= 1;
      if (this.#commands > 0) return;
      this.#timer?.cancel();
      this.#timer = undefined;
      // Commands that are shorter than the time between two looks add up, too.
      if (this.#clock.monotonic() >= this.#nextCountAt) void this.count();
    };
  }

  #allow(): void {
    if (this.#reserveBytes > 0 && !this.isFull) rmSync(this.#fullFile, { force: true });
    const { files } = this.#usage;
    this.#allowed = {
      bytes: this.isFull ? this.#mostBytes() : this.#limits.diskBytes,
      files: Math.max(this.#limits.files, files),
    };
  }

  /** Of a full sandbox: what it has, or what it had when the limit was first exceeded, and its reserve. */
  #mostBytes(): number {
    const { bytes } = this.#usage;
    if (this.#reserveBytes === 0) return bytes;
    try {
      if (!existsSync(this.#fullFile)) writeFileSync(this.#fullFile, String(bytes));
      // A file that was cut off when the disk became full says nothing.
      return (Number(readFileSync(this.#fullFile, 'utf8')) || bytes) + this.#reserveBytes;
    } catch {
      // What cannot be recorded would be given again and again.
      return bytes;
    }
  }

  get #fullFile(): string {
    return path.join(this.#folder.folder, FULL_FILE);
  }

  async #look(): Promise<void> {
    const free = freeBytes(this.#folder.folder);
    const room = this.#allowed.bytes - this.#usage.bytes;
    // Others write to the disk, too: this only brings the next count forward.
    const isUrgent = this.#freeBytes - free > room;
    if (free < RESERVE_BYTES) this.#sandbox.exceeded();
    else if (isUrgent || this.#clock.monotonic() >= this.#nextCountAt) await this.count();
    if (this.#commands > 0) this.#timer?.refresh();
  }

  async #countOnce(): Promise<void> {
    const began = this.#clock.monotonic();
    const before = this.#usage;
    // What commands have left that ended before this count is not the fault of one that starts during it.
    const isAfterCommands = this.#commands === 0;
    this.#freeBytes = freeBytes(this.#folder.folder);
    const look = () => usageOf(this.#folder, this.#sandbox.processes());
    this.#usage = await look()
      .catch(() => this.#sandbox.uncover().then(look))
      // Too many files to be counted in time, or they are hidden again and again.
      .catch(() => ({ bytes: 0, files: Number.POSITIVE_INFINITY }));
    const { bytes, files } = this.#usage;
    if (files <= this.#limits.files && (!this.isFull || this.#reserveBytes === 0)) this.#strikes = 0;
    if (!this.isFull) this.#allowed.bytes = this.#limits.diskBytes;
    if (isAfterCommands) {
      this.#allow();
    } else if (this.#commands > 0 && (bytes > this.#allowed.bytes || files > this.#allowed.files)) {
      const mayRemove = this.#allowed.bytes > this.#limits.diskBytes && this.#reserveBytes > 0;
      if (mayRemove || this.#allowed.files > this.#limits.files) this.#strikes += 1;
      this.#sandbox.exceeded();
    }
    const tookMs = this.#clock.monotonic() - began;
    const isQuiet = bytes === before.bytes && files === before.files;
    this.#intervalMs = isQuiet ? Math.min(2 * this.#intervalMs, LONGEST_MS) : LOOK_MS;
    this.#nextCountAt = this.#clock.monotonic() + Math.max(this.#intervalMs, tookMs / COUNTING_SHARE);
  }
}

/** `du` follows no links and is safe from folders that are exchanged while it is in them. */
async function usageOf({ workspace, home, temporary }: SandboxFolder, processes: readonly number[]): Promise<Usage> {
  const folders = [workspace, home, temporary];
  const [bytes, files, deleted] = await Promise.all([
    total('--block-size=1', folders),
    total('--inodes', folders),
    deletedBytes(workspace, processes),
  ]);
  return { bytes: bytes + deleted, files: files - folders.length };
}

async function total(unit: string, folders: readonly string[]): Promise<number> {
  const { out, errors } = await outputOf('du', ['-scx', unit, '--', ...folders]);
  // Files that vanish meanwhile are no problem. Folders that cannot be read hide what is in them.
  if (/Permission denied/.test(errors)) throw new Error('du cannot read everything');
  const found = /^(\d+)\ttotal$/m.exec(out);
  if (found === null) throw new Error('du has no total');
  return Number(found[1]);
}

/** Of files that were removed while they are open. */
async function deletedBytes(folder: string, processes: readonly number[]): Promise<number> {
  if (processes.length === 0) return 0;
  const places = processes.flatMap((pid) => [`/proc/${pid}/fd`, `/proc/${pid}/map_files`]);
  const listing = ['-L', ...places, '-maxdepth', '1', '-type', 'f', '-links', '0', '-printf', '%D:%i %b\n'];
  const { out } = await outputOf('find', listing);
  const device = `${statSync(folder).dev}:`;
  const own = new Set(out.split('\n').filter((line) => line.startsWith(device)));
  return [...own].reduce((bytes, line) => bytes + 512 * Number(line.split(' ')[1]), 0);
}

/** Both programs fail if something vanishes while they look at it. */
async function outputOf(program: string, args: readonly string[]): Promise<{ out: string; errors: string }> {
  const options = { timeout: COUNT_TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: 4 * 1024 * 1024 } as const;
  try {
    const { stdout, stderr } = await execFileAsync(program, args, options);
    return { out: stdout, errors: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout: string; stderr: string };
    if (code !== 1) throw error;
    return { out: stdout, errors: stderr };
  }
}

/** Without an answer, the folders still are counted. */
function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
