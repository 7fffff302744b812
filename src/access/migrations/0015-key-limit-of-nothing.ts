import type { Migration } from '../../storage/migrate.ts';

/** A key may be limited to what costs nothing. */
export const keyLimitOfNothing: Migration = {
  name: '0015-key-limit-of-nothing',
  sql: `
    alter table api_keys drop constraint api_keys_limit_nano_check;
    alter table api_keys add constraint api_keys_limit_nano_check check (limit_nano >= 0);
  `,
};
