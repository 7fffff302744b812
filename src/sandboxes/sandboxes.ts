/** Creates sandboxes with the driver of this machine, and keeps those of this process. */
import { GatewayError } from '../base/errors.ts';
import type { Blobs } from '../blobs/index.ts';
import { checkId, checkOptions, limitsWithin } from './check.ts';
import { CreatedSandbox } from './created-sandbox.ts';
import type { DriverParts, Examination, SandboxDriver, SandboxRecord } from './driver.ts';
import { allowedDrivers, chooseDriver, DRIVERS, type DriverChoice } from './drivers.ts';
import type { Sandbox, SandboxOptions } from './sandbox.ts';

/** Intervals for finding what dead gateways left: while another gateway has sandboxes, and otherwise. */
const SWEEP_AGAIN_MS = 60_000;
const SWEEP_SELDOM_MS = 600_000;

interface SandboxesParts extends DriverParts {
  /** For snapshots. */
  blobs: Blobs;
}

export class Sandboxes {
  readonly #parts: SandboxesParts;
  readonly #choices: readonly DriverChoice[];
  /** null while one is being created. */
  readonly #running = new Map<string, CreatedSandbox | null>();
  #driver: Promise<SandboxDriver> | undefined;
  #isClosed = false;

  /** @param choices replaced in tests */
  constructor(parts: SandboxesParts, choices = DRIVERS) {
    this.#parts = parts;
    this.#choices = choices;
  }

  /** What isolates sandboxes here. */
  async examine(): Promise<Examination> {
    return (await this.#chosen()).examine();
  }

  /**
   * Creates a sandbox, or continues with the workspace of one that was stopped.
   * @throws GatewayError 400 with the field's path, 409 if it runs already, 503 if none can run here or too many run
   */
  async create(options: SandboxOptions): Promise<Sandbox> {
    checkOptions(options);
    const { settings, clock, blobs } = this.#parts;
    const limits = limitsWithin(settings, options.limits ?? {});
    const driver = await this.#chosen();
    const { id, owner, reserveBytes = 0, network = null, environment = {}, programs = [] } = options;
    this.#reserve(id);
    try {
      const inner = await driver.create({ id, owner, limits, reserveBytes, network, programs });
      const stopped = () => void this.#running.delete(id);
      const parts = { settings, environment, clock, blobs, stopped, removeWorkspace: () => driver.remove(id) };
      const sandbox = new CreatedSandbox(id, limits, inner, parts);
      this.#running.set(id, sandbox);
      if (this.#isClosed) await sandbox.stop();
      return sandbox;
    } catch (error) {
      this.#running.delete(id);
      throw error;
    }
  }

  /** The sandbox, if it runs in this process. */
  running(id: string): Sandbox | undefined {
    return this.#running.get(id) ?? undefined;
  }

  /** The workspaces that exist, whether their sandboxes run or not. Compare their owners to find what has outlived them. */
  async list(): Promise<SandboxRecord[]> {
    return (await this.#chosen()).list();
  }

  /**
   * Removes workspace and home of a sandbox, which is ended if it runs in this process. Does nothing if there is none.
   * @throws GatewayError 409 if it runs in another process
   */
  async destroy(id: string): Promise<void> {
    checkId(id);
    const sandbox = this.#running.get(id);
    if (sandbox) return sandbox.destroy();
    if (sandbox === null) throw busy(id);
    await (await this.#chosen()).remove(id);
  }

  /**
   * Ends what gateways that were killed have left, now and from time to time: on other machines a dead gateway is known by its
   * silence, and it may be the only one that does not start again. Call it at the start.
   * @param isOver whether the owner is gone for good: then its workspace is removed too, now or in the next sweep
   */
  async sweep(isOver: (owner: string) => boolean): Promise<void> {
    const isOwned = await this.#sweepOnce(isOver);
    this.#sweepLater(isOwned, isOwned ? isOver : () => false);
  }

  #sweepLater(isOwned: boolean, isOver: (owner: string) => boolean): void {
    this.#parts.clock.timer(isOwned ? SWEEP_AGAIN_MS : SWEEP_SELDOM_MS, async () => {
      if (!this.#isClosed) this.#sweepLater(await this.#sweepOnce(isOver), () => false);
    });
  }

  /** @returns whether another process has sandboxes */
  async #sweepOnce(isOver: (owner: string) => boolean): Promise<boolean> {
    const { log } = this.#parts;
    let isOwned = false;
    for (const driver of await this.#loadedDrivers()) {
      try {
        const ended = await driver.sweep();
        if (ended > 0) log.info('ended sandboxes of a gateway that was killed', { count: ended });
        const records = await driver.list();
        isOwned ||= records.some(({ id, running }) => running && !this.#running.has(id));
        const left = records.filter(({ owner, running }) => !running && isOver(owner));
        for (const { id } of left) await driver.remove(id);
      } catch (error) {
        log.error('sandboxes of a gateway that was killed cannot be ended', { error });
      }
    }
    return isOwned;
  }

  /** Empty if a driver cannot be loaded. Must not reject, because nothing awaits a sweep on a timer. */
  async #loadedDrivers(): Promise<readonly SandboxDriver[]> {
    try {
      return await allowedDrivers(this.#parts, this.#choices);
    } catch (error) {
      this.#parts.log.error('sandboxes of a gateway that was killed cannot be looked for', { error });
      return [];
    }
  }

  /** Stops all; workspaces stay. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const { log } = this.#parts;
    const stop = async (sandbox: CreatedSandbox | null) => {
      try {
        await sandbox?.stop();
      } catch (error) {
        log.error('a sandbox cannot be stopped', { sandbox: sandbox?.id, error });
      }
    };
    await Promise.all([...this.#running.values()].map(stop));
  }

  #reserve(id: string): void {
    const { running: most } = this.#parts.settings;
    if (this.#isClosed) throw new GatewayError('server', 'The gateway is shutting down.', { status: 503 });
    if (this.#running.has(id)) throw busy(id);
    if (this.#running.size >= most) {
      const message = `This gateway already runs ${most} sandboxes (sandboxes.running). Retry later.`;
      throw new GatewayError('server', message, { status: 503, retryAfterSeconds: 5, metadata: { retryable: true } });
    }
    this.#running.set(id, null);
  }

  #chosen(): Promise<SandboxDriver> {
    this.#driver ??= this.#choose().catch((error: unknown) => {
      this.#driver = undefined;
      throw error;
    });
    return this.#driver;
  }

  async #choose(): Promise<SandboxDriver> {
    const driver = await chooseDriver(this.#parts.settings.driver, await allowedDrivers(this.#parts, this.#choices));
    const { isolation, mayChange } = await driver.examine();
    // A cluster that cannot be reached now is asked again.
    if (isolation === null && mayChange) this.#driver = undefined;
    return driver;
  }
}

/** 409 for a sandbox that runs already. */
function busy(id: string): GatewayError {
  return new GatewayError('invalid_request', `The sandbox ${id} is already running.`, { status: 409 });
}
