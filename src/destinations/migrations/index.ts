/** The tables of destinations, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { destinations } from './0220-destinations.ts';
import { sealedBatches } from './0221-sealed-batches.ts';

export const destinationMigrations: readonly Migration[] = [destinations, sealedBatches];
