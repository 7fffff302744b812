/** The table of blobs, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { blobs } from './0130-blobs.ts';
import { blobBackends } from './0131-blob-backends.ts';

export const blobMigrations: readonly Migration[] = [blobs, blobBackends];
