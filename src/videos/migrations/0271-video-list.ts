import type { Migration } from '../../storage/migrate.ts';

export const videoList: Migration = {
  name: '0271-video-list',
  sql: `
    -- Ids begin with the time of creation, so this is the order of the list.
    create index videos_listed on videos (workspace_id, id);
    drop index videos_of_workspace;
  `,
};
