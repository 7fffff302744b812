/** The table of the response cache, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { cachedAnswers } from './0070-cached-answers.ts';

export const cacheMigrations: readonly Migration[] = [cachedAnswers];
