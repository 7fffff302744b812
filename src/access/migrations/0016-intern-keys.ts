import type { Migration } from '../../storage/migrate.ts';

/** Keys that are confined to an intern, and the secrets that its sandboxes use. */
export const internKeys: Migration = {
  name: '0016-intern-keys',
  sql: `
    alter table api_keys add column intern_id uuid;
    create unique index api_keys_intern on api_keys (intern_id) where deleted_at is null;
    alter table key_aliases drop constraint key_aliases_kind_check;
    -- sandbox: of one start of an intern.
    alter table key_aliases add constraint key_aliases_kind_check check (kind in ('external', 'predecessor', 'sandbox'));
  `,
};
