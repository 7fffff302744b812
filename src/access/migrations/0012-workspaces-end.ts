import type { Migration } from '../../storage/migrate.ts';

/** A deleted workspace stays for the keys and the ledger that refer to it; its slug is free again. */
export const workspacesEnd: Migration = {
  name: '0012-workspaces-end',
  sql: `
    alter table workspaces add column deleted_at timestamptz;
    alter table workspaces drop constraint workspaces_organization_id_slug_key;
    create unique index workspaces_slug on workspaces (organization_id, slug) where deleted_at is null;
    -- Empty once the default workspace was deleted.
    alter table organizations alter column default_workspace_id drop not null;
  `,
};
