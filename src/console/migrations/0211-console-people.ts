import type { Migration } from '../../storage/migrate.ts';

export const consolePeople: Migration = {
  name: '0211-console-people',
  sql: `
    -- Set where the session was begun at the identity provider.
    alter table console_sessions add column user_id text;

    -- The management keys that sessions of members act for. Their tokens were stored nowhere.
    create table console_people (
      user_id text primary key,
      key_hash text not null
    );
  `,
};
