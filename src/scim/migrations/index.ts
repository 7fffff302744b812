/** The tables of SCIM, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { scimUsersAndGroups } from './0110-scim-users-and-groups.ts';
import { scimMappings } from './0111-scim-mappings.ts';
import { emailsOfUsers } from './0112-emails-of-users.ts';

export const scimMigrations: readonly Migration[] = [scimUsersAndGroups, scimMappings, emailsOfUsers];
