import type { Migration } from '../../storage/migrate.ts';

export const idempotencyKeys: Migration = {
  name: '0161-idempotency-keys',
  sql: `
    alter table batches add column idempotency_key text, add column body_sha256 bytea;
    create unique index batches_by_idempotency_key on batches (workspace_id, idempotency_key)
      where idempotency_key is not null;
  `,
};
