/** Removes the files of expired vector stores, ends files that no job adds, and removes what was made for files that were not added. */
import type { Clock } from '../base/clock.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Database } from '../storage/database.ts';
import { failForgotten } from './entries.sql.ts';
import { deleteLeftPieces } from './pieces.sql.ts';
import { emptyExpiredStores } from './store.ts';

const EVERY_MS = 10 * 60_000;
/** Longer than all attempts to add a file together. */
const FORGOTTEN_MS = 24 * 60 * 60_000;

export function tidyVectorStoresJob({ database, clock }: { database: Database; clock: Clock }): JobKind {
  return {
    name: 'vector-stores.tidy',
    runs: 'one',
    retries: 0,
    everyMs: EVERY_MS,
    async run() {
      const now = clock.now();
      await emptyExpiredStores(database, new Date(now));
      await failForgotten(database, new Date(now - FORGOTTEN_MS), 'the file was not added within a day');
      await deleteLeftPieces(database);
    },
  };
}
