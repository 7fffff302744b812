import type { Migration } from '../../storage/migrate.ts';

export const workspaceBudgets: Migration = {
  name: '0052-workspace-budgets',
  sql: `
    create table workspace_budgets (
      id uuid primary key,
      workspace_id uuid not null references workspaces,
      interval text not null check (interval in ('lifetime', 'daily', 'weekly', 'monthly')),
      limit_nano bigint not null check (limit_nano > 0),
      created_at timestamptz not null,
      updated_at timestamptz not null,
      unique (workspace_id, interval)
    );
  `,
};
