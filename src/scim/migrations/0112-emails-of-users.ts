import type { Migration } from '../../storage/migrate.ts';

/** Members are recognised by their addresses when an identity provider first tells of them. */
export const emailsOfUsers: Migration = {
  name: '0112-emails-of-users',
  sql: 'create index users_email on users (lower(email));',
};
