/** The table of files, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { files } from './0150-files.ts';
import { fileExpiry } from './0151-file-expiry.ts';

export const fileMigrations: readonly Migration[] = [files, fileExpiry];
