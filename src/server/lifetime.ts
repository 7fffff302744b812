/** The lifetime of the gateway process: cleanup steps, and the signals that trigger them. */
import type { Clock, Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { keepAlive } from '../storage/keep-alive.ts';
import { Terminal, watchNpm } from './launcher.ts';

/** A terminal that closes may send its signal a moment before it is gone. */
const HANGUP_MS = 200;

export class Lifetime {
  ending = false;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #terminal = new Terminal();
  readonly #cleanup: (() => Promise<void>)[] = [];
  #reload: () => void = () => {};
  #retire: () => number = () => 0;
  #started = false;
  /** Ends the time between the end of readiness and that of the listener. */
  #endDelay: (() => void) | undefined;

  constructor(log: Log, clock: Clock, environment: Readonly<Record<string, string | undefined>>) {
    this.#log = log;
    this.#clock = clock;
    process.on('SIGINT', () => void this.#end('SIGINT'));
    process.on('SIGTERM', () => void this.#end('SIGTERM', true));
    process.on('SIGHUP', () => this.#onHangup());
    // The launcher of the installed package holds the other end of this channel.
    process.on('disconnect', () => void this.#end('the launcher is gone'));
    watchNpm(environment, clock, () => void this.#end('npm is gone'));
  }

  onEnd(step: () => Promise<void>): void {
    this.#cleanup.push(step);
  }

  onReload(reload: () => void): void {
    this.#reload = reload;
  }

  /** @param retire makes `/ready` answer 503; returns for how many milliseconds everything else is still served */
  onRetire(retire: () => number): void {
    this.#retire = retire;
  }

  /** Everything has started; a stop requested meanwhile happens now. */
  started(): void {
    this.#started = true;
    if (this.ending) void this.#finish();
  }

  /** Runs the cleanup steps, last one first. */
  async unwind(): Promise<void> {
    await keepAlive(async () => {
      for (const step of this.#cleanup.splice(0).reverse()) await step();
    });
  }

  /** SIGHUP reloads. It is also sent when the terminal closes, and then the gateway must stop. */
  #onHangup(): void {
    if (process.platform !== 'win32' && !this.#terminal.wasAttached) {
      this.#reload();
      return;
    }
    this.#clock.timer(HANGUP_MS, () => {
      if (this.#terminal.isAttached) this.#reload();
      else void this.#end('the terminal is gone');
    });
  }

  /** @param retires load balancers are given time to notice; a further signal without it ends that time */
  async #end(reason: string, retires = false): Promise<void> {
    if (this.ending) {
      if (!retires) this.#endDelay?.();
      return;
    }
    this.ending = true;
    this.#log.info('stopping', { reason });
    if (!this.#started) return;
    const delayMs = retires ? this.#retire() : 0;
    if (delayMs > 0) await this.#wait(delayMs);
    await this.#finish();
  }

  async #wait(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer: Timer = this.#clock.timer(ms, resolve);
    this.#endDelay = resolve;
    await promise;
    timer.cancel();
  }

  async #finish(): Promise<void> {
    let code = 0;
    try {
      await this.unwind();
      this.#log.info('stopped');
    } catch (error) {
      this.#log.error('the shutdown failed', { cause: error });
      code = 1;
    }
    process.exit(code);
  }
}
