import type { Migration } from '../../storage/migrate.ts';

/**
 * The requests of a session or of an end user, newest first. Without an index a list of few among millions of rows reads all
 * of them. Rows without a session or a user, most of some installations, are in neither index and cost nothing.
 */
export const sessionsAndUsers: Migration = {
  name: '0031-sessions-and-users',
  sql: `
    create index generations_of_session on generations (session_id, id) where session_id is not null;
    create index generations_of_user on generations (external_user, id) where external_user is not null;
  `,
};
