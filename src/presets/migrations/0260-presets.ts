import type { Migration } from '../../storage/migrate.ts';

export const presets: Migration = {
  name: '0260-presets',
  sql: `
    create table presets (
      id uuid primary key,
      organization_id text not null,
      workspace_id uuid not null references workspaces (id),
      slug text not null,
      creator_user_id text,
      designated_version_id uuid not null,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      unique (workspace_id, slug)
    );

    create table preset_versions (
      id uuid primary key,
      preset_id uuid not null references presets (id) on delete cascade,
      version int not null,
      -- The format of the request that it was made from.
      format text not null,
      -- JSON as text: numbers keep all their digits.
      config text not null,
      system_prompt text,
      creator_id text not null,
      created_at timestamptz not null,
      unique (preset_id, version)
    );
  `,
};
