import type { Migration } from '../../storage/migrate.ts';

export const workspaceRateLimits: Migration = {
  name: '0053-workspace-rate-limits',
  sql: `
    -- For all keys of the workspace together; as those of a key.
    alter table workspaces add column rate_limits jsonb;
  `,
};
