import type { Migration } from '../../storage/migrate.ts';

export const fileExpiry: Migration = {
  name: '0151-file-expiry',
  sql: `
    alter table files add column expires_at timestamptz;
    create index files_expiring on files (expires_at) where expires_at is not null;
  `,
};
