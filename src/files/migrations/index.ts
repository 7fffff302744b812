/** The tables of files, their uploads and their copies, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { files } from './0150-files.ts';
import { fileExpiry } from './0151-file-expiry.ts';
import { fileCopies } from './0152-file-copies.ts';
import { resumableUploads } from './0153-resumable-uploads.ts';

export const fileMigrations: readonly Migration[] = [files, fileExpiry, fileCopies, resumableUploads];
