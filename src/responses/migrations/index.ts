import type { Migration } from '../../storage/migrate.ts';
import { responses } from './0240-responses.ts';

export const responseMigrations: readonly Migration[] = [responses];
