/** Reports refusals at a bounded rate, however many a sandbox provokes. */
import type { Clock } from '../base/clock.ts';
import type { Destination } from './destination.ts';
import type { Refusal } from './refusal.ts';
import type { RefusalReport } from './settings.ts';

const INTERVAL_MS = 60_000;
/** Different refusals within an interval; further ones are counted as `more`. */
const MOST_KINDS = 64;

export class RefusalReports {
  readonly #clock: Clock;
  readonly #send: (report: RefusalReport) => void;
  /** Those of the running interval, with the number that is not reported yet. */
  readonly #pending = new Map<string, RefusalReport>();

  constructor(clock: Clock, send: (report: RefusalReport) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  /** Reports the first of its kind at once, and the others of a minute together. */
  add({ reason, message, secret }: Refusal, destination: Destination | undefined): void {
    const { host = null, port = null } = destination ?? {};
    const report = { reason, message, secret: secret ?? null, host, port, count: 0 };
    this.#count([reason, secret, host, port].join(' '), report);
  }

  #count(key: string, report: RefusalReport): void {
    const known = this.#pending.get(key);
    if (known !== undefined) {
      known.count += 1;
    } else if (this.#pending.size < MOST_KINDS) {
      if (this.#pending.size === 0) this.#clock.timer(INTERVAL_MS, () => this.#flush());
      this.#pending.set(key, report);
      this.#send({ ...report, count: 1 });
    } else {
      const more = {
        reason: 'more',
        message: 'Other requests were refused, too.',
        secret: null,
        host: null,
        port: null,
      };
      const rest = this.#pending.get('more');
      if (rest === undefined) this.#pending.set('more', { ...more, count: 1 });
      else rest.count += 1;
    }
  }

  #flush(): void {
    const all = [...this.#pending.values()];
    this.#pending.clear();
    for (const report of all) if (report.count > 0) this.#send(report);
  }
}
