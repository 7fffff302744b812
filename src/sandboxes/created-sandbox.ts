/** A sandbox of any driver: its commands with their limits, its files, its end. */
import type { Clock } from '../base/clock.ts';
import type { SandboxesSettings } from '../base/config.ts';
import { GatewayError } from '../base/errors.ts';
import type { Blob, Blobs } from '../blobs/index.ts';
import { bounded } from './bounded.ts';
import { checkCommand } from './check.ts';
import type { DriverSandbox } from './driver.ts';
import { listFiles, readFile, writeFile } from './files.ts';
import { type Command, type Entry, type Execution, type Sandbox, type SandboxLimits, WORKSPACE } from './sandbox.ts';
import { restore, snapshot } from './snapshots.ts';

interface CreatedParts {
  settings: Pick<SandboxesSettings, 'commandMs' | 'outputBytes'>;
  environment: Readonly<Record<string, string>>;
  clock: Clock;
  blobs: Blobs;
  /** Called once, when no process of the sandbox is left. */
  stopped(): void;
  removeWorkspace(): Promise<void>;
}

export class CreatedSandbox implements Sandbox {
  readonly id: string;
  readonly limits: SandboxLimits;
  readonly #inner: DriverSandbox;
  readonly #parts: CreatedParts;
  #stopping: Promise<void> | undefined;

  constructor(id: string, limits: SandboxLimits, inner: DriverSandbox, parts: CreatedParts) {
    this.id = id;
    this.limits = limits;
    this.#inner = inner;
    this.#parts = parts;
  }

  get isFull(): boolean {
    return this.#inner.isFull ?? false;
  }

  async exec(command: Command): Promise<Execution> {
    checkCommand(command);
    if (this.#stopping !== undefined) {
      throw new GatewayError('invalid_request', `The sandbox ${this.id} was stopped.`, { status: 409 });
    }
    const { settings, environment, clock } = this.#parts;
    const { argv, cwd = WORKSPACE, timeoutMs = settings.commandMs, outputBytes = settings.outputBytes } = command;
    const cpuSeconds = timeoutMs && Math.ceil((timeoutMs / 1000) * this.limits.cpus) + 1;
    const variables = { ...environment, ...command.environment };
    const execution = await this.#inner.exec({ argv, cwd, environment: variables, cpuSeconds });
    return bounded(execution, { timeoutMs, outputBytes }, clock);
  }

  readFile(path: string, mostBytes: number): Promise<Buffer> {
    return readFile(this, path, mostBytes);
  }

  writeFile(path: string, content: Buffer | string): Promise<void> {
    return writeFile(this, path, content);
  }

  listFiles(path: string, most: number): Promise<Entry[]> {
    return listFiles(this, path, most);
  }

  snapshot(): Promise<Blob> {
    return snapshot(this, this.#parts.blobs, this.limits.diskBytes);
  }

  restore(blobId: string): Promise<void> {
    return restore(this, this.#parts.blobs, blobId);
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#inner.stop().then(
      () => this.#parts.stopped(),
      (error: unknown) => {
        // It can be tried again.
        this.#stopping = undefined;
        throw error;
      },
    );
    return this.#stopping;
  }

  async destroy(): Promise<void> {
    await this.stop();
    await this.#parts.removeWorkspace();
  }
}
