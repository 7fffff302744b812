/** The background job that removes expired responses and ends those of dead processes. */
import type { Clock } from '../base/clock.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Database } from '../storage/database.ts';
import { deleteExpired, failLost } from './store.ts';

const TIDY_MS = 60_000;
const REMOVED_AT_ONCE = 500;

export function tidyResponsesJob({ database, clock }: { database: Database; clock: Clock }): JobKind {
  return {
    name: 'responses.tidy',
    runs: 'one',
    retries: 0,
    everyMs: TIDY_MS,
    atStart: true,
    async run({ signal }) {
      await failLost(database, new Date(clock.now()));
      while ((await deleteExpired(database, new Date(clock.now()), REMOVED_AT_ONCE)) === REMOVED_AT_ONCE) {
        signal.throwIfAborted();
      }
    },
  };
}
