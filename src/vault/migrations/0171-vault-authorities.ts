import type { Migration } from '../../storage/migrate.ts';

export const vaultAuthorities: Migration = {
  name: '0171-vault-authorities',
  sql: `
    -- Sign the certificates that sandboxes see for hosts with secrets.
    create table vault_authorities (
      id uuid primary key,
      vault_id uuid not null references vaults on delete cascade,
      -- PEM.
      certificate text not null,
      -- Under the vault's data key, bound to vault and certificate.
      sealed bytea not null,
      created_at timestamptz not null,
      -- Replaced by a younger one. Sandboxes that started before keep it.
      retired_at timestamptz
    );
    create unique index vault_authorities_current on vault_authorities (vault_id) where retired_at is null;
    create index vault_authorities_vault on vault_authorities (vault_id);
  `,
};
