import type { Migration } from '../../storage/migrate.ts';
import { vectorStores } from './0280-vector-stores.ts';

export const vectorStoreMigrations: readonly Migration[] = [vectorStores];
