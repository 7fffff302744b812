/** The tables of vaults, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { vaults } from './0170-vaults.ts';

export const vaultMigrations: readonly Migration[] = [vaults];
