/** Tables of the statistics, for `storage/migrate.ts`. */
import type { Migration } from '../../../storage/migrate.ts';
import { endpointStatistics } from './0060-endpoint-statistics.ts';

export const statisticsMigrations: readonly Migration[] = [endpointStatistics];
