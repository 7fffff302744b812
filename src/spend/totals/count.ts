/**
 * Computes the totals of each hour that is over, and again if more rows of it arrive. A run replaces earlier totals, so it may
 * die or repeat. Until an hour is counted, queries read its rows.
 */
import type { Clock } from '../../base/clock.ts';
import type { JobKind } from '../../jobs/index.ts';
import type { Database } from '../../storage/database.ts';
import { countHour } from './store.ts';

const COUNT_MS = 300_000;
/** By this time after an hour, most of its requests have been entered. */
const GRACE_MS = 120_000;

interface CountParts {
  database: Pick<Database, 'transaction'>;
  clock: Clock;
}

/** After an upgrade it counts all earlier hours, newest first, each in a transaction of its own. */
export function countTotalsJob({ database, clock }: CountParts): JobKind {
  return {
    name: 'spend.count',
    runs: 'one',
    retries: 0,
    everyMs: COUNT_MS,
    atStart: true,
    async run({ signal }) {
      while (!signal.aborted && (await countHour(database, clock.now() - GRACE_MS)));
    },
  };
}
