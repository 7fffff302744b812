/** The tables of vaults, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { vaults } from './0170-vaults.ts';
import { vaultAuthorities } from './0171-vault-authorities.ts';

export const vaultMigrations: readonly Migration[] = [vaults, vaultAuthorities];
