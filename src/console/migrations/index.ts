/** The tables of the console, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { consoleSessions } from './0210-console-sessions.ts';
import { consolePeople } from './0211-console-people.ts';

export const consoleMigrations: readonly Migration[] = [consoleSessions, consolePeople];
