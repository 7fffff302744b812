/** The tables of destinations, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { destinations } from './0220-destinations.ts';

export const destinationMigrations: readonly Migration[] = [destinations];
