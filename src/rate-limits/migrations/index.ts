/** The tables of rate limits, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { rateLimits } from './0100-rate-limits.ts';

export const rateLimitMigrations: readonly Migration[] = [rateLimits];
