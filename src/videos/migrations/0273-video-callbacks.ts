import type { Migration } from '../../storage/migrate.ts';

export const videoCallbacks: Migration = {
  name: '0273-video-callbacks',
  sql: `
    create table video_callbacks (
      video_id text primary key references videos (id) on delete cascade,
      url text not null,
      status text not null,
      attempts integer not null,
      attempted_at timestamptz,
      last_error text,
      -- When a job was last sent for it.
      seen_at timestamptz not null,
      -- The address of the gateway that the client used, for the URLs in the event.
      base_url text not null default '',
      -- Null while the video is being made.
      ended_at timestamptz
    );
    create index video_callbacks_pending on video_callbacks (seen_at) where status = 'pending' and ended_at is not null;
  `,
};
