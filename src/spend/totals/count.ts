/**
 * Computes the totals of the hours that are over, again when rows came later. It replaces what was there, so a run that dies
 * or repeats does no harm. Until then queries read the rows of these hours.
 */
import type { Clock } from '../../base/clock.ts';
import type { JobKind } from '../../jobs/index.ts';
import type { Database } from '../../storage/database.ts';
import { countHour } from './store.ts';

const COUNT_MS = 300_000;
/** Most requests of an hour have been entered so long after it. */
const GRACE_MS = 120_000;

interface CountParts {
  database: Pick<Database, 'transaction'>;
  clock: Clock;
}

/** After an upgrade it counts all that is there, the newest hours first, one transaction for each. */
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
