import type { Migration } from '../../storage/migrate.ts';

/**
 * Requests that failed, were cancelled or matched a guardrail, newest first. There are few, so that a list of them would read
 * most rows of the months without these indexes, and rows of other requests are in none.
 */
export const rareOutcomes: Migration = {
  name: '0032-rare-outcomes',
  sql: `
    create index generations_failed on generations (id) where error is not null or status >= 400;
    create index generations_cancelled on generations (id) where cancelled;
    create index generations_guarded on generations (id) where guardrails <> '[]'::jsonb;
  `,
};
