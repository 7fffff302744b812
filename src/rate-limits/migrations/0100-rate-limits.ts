import type { Migration } from '../../storage/migrate.ts';

export const rateLimits: Migration = {
  name: '0100-rate-limits',
  sql: `
    -- One counter of one window. Everything is lost with the window, so nothing of it has to be replayed.
    create table rate_windows (
      id text primary key,
      ends_at timestamptz not null,
      -- What processes were given of the limit, whether they have used it or not.
      granted bigint not null default 0,
      -- Counts how often processes were asked to give back what they do not need.
      recalled integer not null default 0
    );
    create index rate_windows_ended on rate_windows (ends_at);

    -- Which processes may have something of a window that they do not need.
    create table rate_leases (
      window_id text not null references rate_windows on delete cascade,
      process_id text not null,
      -- The recall that the process has answered.
      answered integer not null,
      primary key (window_id, process_id)
    );
  `,
};
