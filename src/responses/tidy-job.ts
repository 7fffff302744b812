/** The background job that removes expired responses and conversations, ends those of dead processes, and wakes those whose job was lost. */
import type { Clock } from '../base/clock.ts';
import type { RetentionSettings } from '../base/config.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Database } from '../storage/database.ts';
import type { Claims } from './claims.ts';
import { deleteUnused } from './conversations/conversations.sql.ts';
import { deleteExpired, failLost, queuedBefore } from './store.ts';

const TIDY_MS = 60_000;
const DAY_MS = 86_400_000;
const REMOVED_AT_ONCE = 500;
const WOKEN_AT_ONCE = 200;

interface TidyParts {
  database: Database;
  claims: Claims;
  clock: Clock;
  retention(): RetentionSettings;
  /** Sends the job of a queued response again. */
  wake(id: string): Promise<void>;
}

export function tidyResponsesJob({ database, claims, clock, retention, wake }: TidyParts): JobKind {
  return {
    name: 'responses.tidy',
    runs: 'one',
    retries: 0,
    everyMs: TIDY_MS,
    atStart: true,
    async run({ signal }) {
      await failLost(database, new Date(claims.now()));
      for (const id of await queuedBefore(database, new Date(clock.now() - TIDY_MS), WOKEN_AT_ONCE)) await wake(id);
      while ((await deleteExpired(database, new Date(clock.now()), REMOVED_AT_ONCE)) === REMOVED_AT_ONCE) {
        signal.throwIfAborted();
      }
      const { conversationsDays } = retention();
      if (conversationsDays === null) return;
      const usedBefore = new Date(clock.now() - conversationsDays * DAY_MS);
      while ((await deleteUnused(database, usedBefore, REMOVED_AT_ONCE)) === REMOVED_AT_ONCE) signal.throwIfAborted();
    },
  };
}
