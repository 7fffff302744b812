/** The tables of files and their copies, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { files } from './0150-files.ts';
import { fileExpiry } from './0151-file-expiry.ts';
import { fileCopies } from './0152-file-copies.ts';

export const fileMigrations: readonly Migration[] = [files, fileExpiry, fileCopies];
