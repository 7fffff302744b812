/** The tables of encryption keys, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { sealingKeys } from './0090-sealing-keys.ts';

export const sealingMigrations: readonly Migration[] = [sealingKeys];
