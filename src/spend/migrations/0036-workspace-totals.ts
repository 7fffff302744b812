import type { Migration } from '../../storage/migrate.ts';

/** Totals of workspaces (the grains workspace_hour and workspace_day) come with the next count of each hour. */
export const workspaceTotals: Migration = {
  name: '0036-workspace-totals',
  sql: `
    insert into generation_hours_to_count
    select distinct at from generation_totals where grain = 'hour' on conflict (hour) do nothing;
  `,
};
