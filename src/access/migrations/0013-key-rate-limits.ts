import type { Migration } from '../../storage/migrate.ts';

export const keyRateLimits: Migration = {
  name: '0013-key-rate-limits',
  sql: `
    -- By measure, {"requests_per_minute": 60}; null where only the configuration's hold.
    alter table api_keys add column rate_limits jsonb;
  `,
};
