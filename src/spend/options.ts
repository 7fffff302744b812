/** The options of `createSpend`. */
import type { Clock } from '../base/clock.ts';
import type { EndOfTurn } from '../base/end-of-turn.ts';
import type { Log } from '../base/log.ts';
import type { Changes, Database } from '../storage/database.ts';
import type { JournalOptions } from './journal.ts';
import type { LeaseLimits } from './lease-wait-queue.ts';
import type { LedgerLimits } from './ledger.ts';

export interface SpendOptions {
  database: Database;
  changes: Changes;
  clock: Clock;
  log: Log;
  /** Of this gateway, for the list of processes. */
  version?: string;
  /** Contains the journals in its folder `journal`. */
  dataDir: string;
  /** Overridden in tests. */
  journal?: Partial<Pick<JournalOptions, 'files' | 'segmentBytes' | 'ballastBytes' | 'syncMs'>>;
  ledger?: Partial<LedgerLimits>;
  leases?: Partial<LeaseLimits>;
  maintainMs?: number;
  endOfTurn?: EndOfTurn;
}
