import type { Migration } from '../../storage/migrate.ts';
import { vectorStores } from './0280-vector-stores.ts';
import { vectorStorePieces } from './0281-vector-store-pieces.ts';

export const vectorStoreMigrations: readonly Migration[] = [vectorStores, vectorStorePieces];
