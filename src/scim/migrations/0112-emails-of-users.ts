import type { Migration } from '../../storage/migrate.ts';

/** Finds members by e-mail address when an identity provider first reports them. */
export const emailsOfUsers: Migration = {
  name: '0112-emails-of-users',
  sql: 'create index users_email on users (lower(email));',
};
