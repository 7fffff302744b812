/** Counts the running calls of each provider, per process, against its `max_concurrency`. */
import type { Provider } from '../../providers/index.ts';

type Limited = Pick<Provider, 'id' | 'maxConcurrency'>;

export class Concurrency {
  readonly #running: Map<string, number>;
  readonly #isBackground: boolean;

  constructor(running = new Map<string, number>(), isBackground = false) {
    this.#running = running;
    this.#isBackground = isBackground;
  }

  /** The same slots for work in the background, which leaves a quarter of them, and at least one of several, to the rest. */
  background(): Concurrency {
    return new Concurrency(this.#running, true);
  }

  /** Takes a slot, which `leave` gives back. Returns false when the provider is full. */
  enter(provider: Limited): boolean {
    const running = this.#running.get(provider.id) ?? 0;
    if (running >= this.#most(provider)) return false;
    this.#running.set(provider.id, running + 1);
    return true;
  }

  leave(provider: Limited): void {
    this.#running.set(provider.id, (this.#running.get(provider.id) ?? 1) - 1);
  }

  #most({ maxConcurrency }: Limited): number {
    return this.#isBackground ? Math.max(1, maxConcurrency - Math.ceil(maxConcurrency / 4)) : maxConcurrency;
  }
}
