import type { Migration } from '../../storage/migrate.ts';

export const organizations: Migration = {
  name: '0010-organizations',
  sql: `
    create table users (
      id text primary key check (id like 'user\\_%'),
      name text not null,
      email text,
      created_at timestamptz not null
    );

    create table organizations (
      id text primary key check (id like 'org\\_%'),
      name text not null,
      default_workspace_id uuid not null,
      created_at timestamptz not null
    );

    -- A user who leaves loses this row only; keys and the ledger go on to name the user.
    create table members (
      organization_id text not null references organizations,
      user_id text not null references users,
      role text not null check (role in ('admin', 'member')),
      created_at timestamptz not null,
      primary key (organization_id, user_id)
    );

    create table workspaces (
      id uuid primary key,
      organization_id text not null references organizations,
      slug text not null,
      name text not null,
      created_at timestamptz not null,
      unique (organization_id, slug),
      unique (organization_id, id)
    );

    -- Deferred, because each of the two tables refers to the other.
    alter table organizations
      add foreign key (id, default_workspace_id) references workspaces (organization_id, id) deferrable initially deferred;
  `,
};
