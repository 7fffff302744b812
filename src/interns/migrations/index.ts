/** The tables of interns, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { interns } from './0190-interns.ts';

export const internMigrations: readonly Migration[] = [interns];
