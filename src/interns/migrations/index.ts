/** The tables of interns, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { interns } from './0190-interns.ts';
import { internSessions } from './0191-intern-sessions.ts';
import { internHolders } from './0192-intern-holders.ts';
import { internEndpoints } from './0193-intern-endpoints.ts';

export const internMigrations: readonly Migration[] = [interns, internSessions, internHolders, internEndpoints];
