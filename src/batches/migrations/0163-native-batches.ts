import type { Migration } from '../../storage/migrate.ts';

export const nativeBatches: Migration = {
  name: '0163-native-batches',
  sql: `
    -- Batches whose items are being assigned to batch interfaces of providers. Nothing of them runs directly meanwhile.
    create table batch_plans (
      batch_id uuid primary key,
      -- The process that plans may keep the plan until claimed_until.
      claim uuid,
      claimed_until timestamptz
    );
    -- A batch at a provider, with a part of the items of one of ours. Its items carry its id as their claim.
    create table native_batches (
      -- Also our marker at the provider.
      id uuid primary key,
      batch_id uuid not null,
      key_id text not null,
      endpoint_id text not null,
      model text not null,
      credential text not null,
      byok_id text,
      format text not null,
      path text not null,
      items integer not null,
      bytes bigint not null,
      blob_id uuid not null,
      created_at timestamptz not null,
      -- The first attempt to submit it, and the last one whose outcome is unknown.
      began_at timestamptz,
      tried_at timestamptz,
      upload_id text,
      upstream_id text,
      -- Batches of the account that were taken for it.
      not_ours text[] not null default '{}',
      cancelled boolean not null default false,
      failures integer not null default 0,
      polls integer not null default 0,
      -- Rises with each step, so that only the latest job of a batch acts.
      turn integer not null default 0,
      claim uuid,
      claimed_until timestamptz,
      seen_at timestamptz not null
    );
    create index native_batches_of_batch on native_batches (batch_id);
    create index native_batches_upstream on native_batches (upstream_id) where upstream_id is not null;
    -- The item is not assigned to a batch interface again.
    alter table batch_items add column direct boolean not null default false;
    create index batch_items_claimed on batch_items (batch_id, claim) where outcome is null and claim is not null;
  `,
};
