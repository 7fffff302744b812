import type { Migration } from '../../storage/migrate.ts';

export const responseEvents: Migration = {
  name: '0241-response-events',
  sql: `
    -- Events of responses that run in the background and are streamed, several in a row.
    create table response_events (
      response_id text not null references responses on delete cascade,
      -- The sequence numbers of its first and last event.
      first integer not null,
      last integer not null,
      -- JSON of a list of events, encrypted with the data key of the response.
      sealed bytea not null,
      primary key (response_id, first)
    );
    create index responses_queued on responses (created_at) where status = 'queued';
  `,
};
