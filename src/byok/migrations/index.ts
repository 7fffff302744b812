/** The tables of BYOK credentials, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { byokKeys } from './0091-byok-keys.ts';

export const byokMigrations: readonly Migration[] = [byokKeys];
