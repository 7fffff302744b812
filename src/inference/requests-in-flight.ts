import type { Log } from '../base/log.ts';
import { SlotList } from '../base/slot-list.ts';

/** A request that runs in this process, which a shutdown ends with a proper response instead of a broken connection. */
export interface Interruptible {
  /** Ends the request now: sends its client an error and settles its row. Does nothing if it is over. */
  interrupt(): void;
}

export class RequestsInFlight {
  readonly #log: Log;
  readonly #requests = new SlotList<Interruptible>();
  /** Number of requests that have begun so far. */
  begun = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Number of requests that run now. */
  get open(): number {
    return this.#requests.size;
  }

  /** Returns the request's slot, for `delete`. */
  add(request: Interruptible): number {
    this.begun += 1;
    return this.#requests.add(request);
  }

  delete(request: Interruptible, slot: number): void {
    this.#requests.delete(request, slot);
  }

  interrupt(): void {
    for (const request of this.#requests) {
      try {
        request.interrupt();
      } catch (cause) {
        // The remaining requests must be ended too.
        this.#log.error('ending a request at shutdown failed', { cause });
      }
    }
  }
}
