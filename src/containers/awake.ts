/** The sandboxes of containers in this process: in use, or kept for a while for the next use. */
import type { Clock, Timer } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Sandbox } from '../sandboxes/index.ts';

/** Of one key, in one process. */
const MOST_OF_KEY = 4;

/** A sandbox with the files of a container. */
export interface Awake {
  containerId: string;
  keyId: string;
  /** Of the container, as its files are here. */
  version: number;
  sandbox: Sandbox;
  /** How long it waits for the next use. */
  sleepAfterMs: number;
}

interface Waiting extends Awake {
  timer: Timer;
}

export class AwakeSandboxes {
  readonly #parts: { clock: Clock; log: Log };
  /** By container, the one that waits for longest first. */
  readonly #waiting = new Map<string, Waiting>();
  /** How many each key uses. */
  readonly #used = new Map<string, number>();
  readonly #ending = new Set<Promise<void>>();

  constructor(parts: { clock: Clock; log: Log }) {
    this.#parts = parts;
  }

  /**
   * Begins a use, which `giveBack` or `end` ends. Resolves with the sandbox that has the files of this version, if there is one.
   * @throws GatewayError 429
   */
  async begin(containerId: string, keyId: string, version: number): Promise<Awake | undefined> {
    const own = this.#waiting.get(containerId);
    const fits = own?.version === version;
    const used = this.#used.get(keyId) ?? 0;
    if (used >= MOST_OF_KEY) {
      throw new GatewayError('rate_limit_exceeded', `this key already runs ${MOST_OF_KEY} sandboxes; try again later`, {
        status: 429,
      });
    }
    this.#used.set(keyId, used + 1);
    if (fits) {
      this.#forget(own);
      return own;
    }
    const waiting = [...this.#waiting.values()].filter((each) => each.keyId === keyId && each !== own);
    const surplus = waiting.slice(0, Math.max(0, waiting.length + used + 1 - MOST_OF_KEY));
    await Promise.all([...surplus, ...(own === undefined ? [] : [own])].map((each) => this.#sleep(each)));
    return undefined;
  }

  /** Makes room. Returns whether there was anything. */
  async sleepOldest(): Promise<boolean> {
    const [oldest] = this.#waiting.values();
    if (oldest === undefined) return false;
    await this.#sleep(oldest);
    return true;
  }

  /** A use has ended. */
  async giveBack(awake: Awake): Promise<void> {
    this.end(awake.keyId);
    if (awake.sleepAfterMs <= 0) return this.#destroy(awake.sandbox);
    const timer = this.#parts.clock.timer(awake.sleepAfterMs, () => void this.#sleep(waiting));
    const waiting: Waiting = { ...awake, timer };
    this.#waiting.set(awake.containerId, waiting);
  }

  /** A use has ended without a sandbox. */
  end(keyId: string): void {
    const used = (this.#used.get(keyId) ?? 1) - 1;
    if (used === 0) this.#used.delete(keyId);
    else this.#used.set(keyId, used);
  }

  /** Destroys those that wait. */
  async close(): Promise<void> {
    for (const waiting of this.#waiting.values()) void this.#sleep(waiting);
    await Promise.all(this.#ending);
  }

  #sleep(waiting: Waiting): Promise<void> {
    this.#forget(waiting);
    return this.#destroy(waiting.sandbox);
  }

  #forget(waiting: Waiting): void {
    waiting.timer.cancel();
    if (this.#waiting.get(waiting.containerId) === waiting) this.#waiting.delete(waiting.containerId);
  }

  #destroy(sandbox: Sandbox): Promise<void> {
    const ending = sandbox
      .destroy()
      // The next start removes it.
      .catch((error: unknown) => {
        this.#parts.log.error('the sandbox of a container cannot be destroyed', { sandbox: sandbox.id, error });
      })
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    return ending;
  }
}
