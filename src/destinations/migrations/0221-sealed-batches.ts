import type { Migration } from '../../storage/migrate.ts';

/** Batches of earlier versions keep their plain records until they are delivered, a day at most. */
export const sealedBatches: Migration = {
  name: '0221-sealed-batches',
  sql: `
    alter table destination_batches
      alter column records drop not null,
      -- JSON of a list of records, see sealing/.
      add column sealed bytea;
  `,
};
