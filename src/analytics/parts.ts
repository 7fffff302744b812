/** What the operations of this folder need. */
import type { Clock } from '../base/clock.ts';
import type { Catalog } from '../catalog/index.ts';
import type { Database } from '../storage/database.ts';

export interface AnalyticsParts {
  database: Database;
  clock: Clock;
  catalog(): Pick<Catalog, 'models' | 'find'>;
  /** Resolves when everything this process has settled is in the database. */
  entered(): Promise<void>;
  /** Database time limit of a query; default 10 s. */
  timeoutMs?: number;
}
