import type { Log } from '../base/log.ts';
import { Roster } from '../base/roster.ts';

/** The requests that run in this process, so that a shutdown can end them in words rather than with a cut. */
export interface Interruptible {
  /** Ends the request now: its client is told, its row is entered. Does nothing to one that is over. */
  interrupt(): void;
}

export class Running {
  readonly #log: Log;
  readonly #requests = new Roster<Interruptible>();
  /** How many have begun so far. */
  begun = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** The request's seat, which `delete` wants to know. */
  add(request: Interruptible): number {
    this.begun += 1;
    return this.#requests.add(request);
  }

  delete(request: Interruptible, seat: number): void {
    this.#requests.delete(request, seat);
  }

  interrupt(): void {
    for (const request of this.#requests) {
      try {
        request.interrupt();
      } catch (cause) {
        // Those behind it are to be told as well.
        this.#log.error('a request could not be ended', { cause });
      }
    }
  }
}
