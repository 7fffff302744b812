/** The tables of sign-in, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { authCodes } from './0140-auth-codes.ts';
import { federationKeys } from './0141-federation-keys.ts';

export const signInMigrations: readonly Migration[] = [authCodes, federationKeys];
