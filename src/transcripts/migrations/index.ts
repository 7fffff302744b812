/** The tables of transcripts, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { transcripts } from './0071-transcripts.ts';

export const transcriptMigrations: readonly Migration[] = [transcripts];
