/** The tables of the console, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { consoleSessions } from './0210-console-sessions.ts';

export const consoleMigrations: readonly Migration[] = [consoleSessions];
