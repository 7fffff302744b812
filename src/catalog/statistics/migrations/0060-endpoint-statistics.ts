import type { Migration } from '../../../storage/migrate.ts';

/**
 * A time slice of one endpoint as counted by one process (`slices.ts`). `latency` and `throughput` are sketches
 * (`sketch.ts`). `written_in` lets readers find rows that are new to them.
 */
export const endpointStatistics: Migration = {
  name: '0060-endpoint-statistics',
  sql: `
    create table endpoint_statistics (
      endpoint_id text not null,
      span text not null,
      starts_at timestamptz not null,
      process_id uuid not null,
      answered bigint not null,
      failed bigint not null,
      rate_limited bigint not null,
      tool_calls bigint not null,
      invalid_tool_calls bigint not null,
      latency jsonb not null,
      throughput jsonb not null,
      written_in xid8 not null default pg_current_xact_id(),
      primary key (endpoint_id, span, starts_at, process_id)
    );
    create index endpoint_statistics_written_in on endpoint_statistics (written_in);
    create index endpoint_statistics_age on endpoint_statistics (span, starts_at);
  `,
};
