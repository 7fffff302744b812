import type { Migration } from '../../storage/migrate.ts';

/** Other secrets that stand for a key: what a partner brought along, and what it was before a rotation. */
export const keyAliases: Migration = {
  name: '0014-key-aliases',
  sql: `
    create table key_aliases (
      -- SHA-256 of the secret.
      hash text primary key check (hash ~ '^[0-9a-f]{64}$'),
      key_id uuid not null references api_keys,
      kind text not null check (kind in ('external', 'predecessor')),
      -- Of a predecessor, masked.
      label text,
      created_at timestamptz not null,
      -- null: until somebody ends it.
      expires_at timestamptz
    );
    create index key_aliases_key on key_aliases (key_id);
    insert into key_aliases (hash, key_id, kind, created_at)
      select external_key_hash, id, 'external', created_at from api_keys
       where external_key_hash is not null and deleted_at is null order by created_at on conflict do nothing;
  `,
};
