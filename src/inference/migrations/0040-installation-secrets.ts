import type { Migration } from '../../storage/migrate.ts';

/** Keys that belong to the installation, not to an organization; see `store.ts`. */
export const installationSecrets: Migration = {
  name: '0040-installation-secrets',
  sql: `
    create table installation_secrets (
      name text primary key,
      value bytea not null
    );
  `,
};
