/**
 * Spend: what every request costs, entered exactly once, and never more than the budgets allow.
 *
 * One request: `reserve` its bound against its budgets, `begin` before anything is dispatched, `attempt` before each
 * further endpoint, `seen`/`reported` while the answer runs, `settle` once in `finally`. Behind the door: a journal per
 * process (`journal.ts`), the ledger that carries settled rows into PostgreSQL (`ledger.ts`), leases of budgets
 * (`leases.ts`), and the replay of journals that dead processes left (`replay.ts`).
 */
import type { Clock } from '../base/clock.ts';
import type { EndOfTurn } from '../base/end-of-turn.ts';
import type { Log } from '../base/log.ts';
import type { Nano, Price } from '../base/money.ts';
import type { Usage } from '../formats/conversation/conversation.ts';
import type { Changes, Database } from '../storage/database.ts';
import type { ActivityQuery, ActivitySum } from './activity/store.ts';
import type { Budget, Charge, Interval, Refusal } from './budget.ts';
import type { Accepted, Generation } from './generation.ts';
import type { JournalOptions } from './journal.ts';
import type { LedgerLimits } from './ledger.ts';
import type { LeaseLimits } from './waiting-line.ts';

export type { ActivityQuery, ActivitySum } from './activity/store.ts';
export { type AccountBalance, followBalance, setBalance } from './balance/balance.ts';
export { readBalance } from './balance/store.ts';
export type { Budget, Charge, Interval, Refusal, Scope } from './budget.ts';
export { chargeIn, INTERVALS, limitFromUsd, refusalError, windowStart } from './budget.ts';
export type {
  Accepted,
  ApiType,
  DataRegion,
  Generation,
  GuardrailMark,
  MediaCounts,
  ProviderResponse,
} from './generation.ts';
export { encodeGeneration } from './generation.ts';
export { ENTERED_WITHIN_MS } from './ledger.ts';
export { spendMigrations } from './migrations/index.ts';
export { type SpendOperationParts, spendOperations } from './operations.ts';
export {
  type Hold,
  listProcesses,
  releaseProcess,
  type SpendProcess,
  unreturnedProcesses,
} from './processes/processes.ts';
export { forgetEveryProcess } from './processes/store.ts';
export { spentOfAccount } from './reading.ts';
export { createSpend } from './spending.ts';

export interface SpendOptions {
  database: Database;
  changes: Changes;
  clock: Clock;
  log: Log;
  /** The journal lies in its folder `journal`. */
  dataDir: string;
  /** Differ from the defaults in tests. */
  journal?: Partial<Pick<JournalOptions, 'files' | 'segmentBytes' | 'ballastBytes' | 'syncMs'>>;
  ledger?: Partial<LedgerLimits>;
  leases?: Partial<LeaseLimits>;
  maintainMs?: number;
  endOfTurn?: EndOfTurn;
  /** Rows of generations are kept this long at least and a month longer at most; null: for ever. */
  retentionDays?: () => number | null;
}

/** One dispatch to one endpoint, with what is needed to price it if this process dies. */
export interface Attempt {
  model: string;
  endpointId: string | null;
  providerName: string | null;
  isByok: boolean;
  /** Estimated tokens of the prompt and their cost at this endpoint. */
  promptTokens: number;
  promptNano: Nano;
  /** Price of one output token, 10^-18 USD. */
  outputPrice: Price;
  /** What earlier attempts of this request cost or may have cost. */
  earlier: Charge;
}

/** A part of every budget of one request, held until it is settled or released. All methods after that do nothing. */
export interface Reservation {
  readonly refused?: undefined;
  /** The bound that is held now. */
  readonly held: Charge;
  /**
   * Holds `more` in addition, in all budgets or none; the reservation stands either way. A running request grows within
   * what this process leased under the limit that it came with. Promise only if the database must be asked.
   */
  extend(more: Charge): true | Refusal | Promise<true | Refusal>;
  /** Gives everything back. For requests that end before `begin`. */
  release(): void;
}

/** One accepted request between dispatch and its row. */
export interface OpenGeneration {
  /** Before each further dispatch. Throws GatewayError 503 when the journal cannot be written: do not dispatch. */
  attempt(attempt: Attempt): void;
  /**
   * Total bytes of generated text seen so far in this attempt; cheap enough for every event. The first call is in the
   * journal when it returns, further ones 50 ms later at most.
   */
  seen(outputBytes: number): void;
  /** The upstream reported usage, worth `charge` so far (this attempt and earlier ones). */
  reported(usage: Usage, charge: Charge): void;
  /**
   * Enters the row and settles the reservation at its cost: exactly once, a second call is a bug and throws.
   * @param written called once the row is in the kernel's page cache, at the end of this turn of the event loop at the
   * latest: the answer's last byte is not sent before that
   */
  settle(row: Generation, written?: () => void): void;
}

/** USD totals of one key, nano-dollars (wire/keys.md, `usage*` and `byok_usage*`). */
export interface KeyUsage {
  usage: Record<Interval, Nano>;
  byok: Record<Interval, Nano>;
}

/** One budget as GET /budget and limit_remaining show it. */
export interface BudgetState {
  budget: Budget;
  spentNano: Nano;
  /** Held by processes for running requests, or idle; not yet spent. */
  leasedNano: Nano;
  /**
   * The part of `leasedNano` of processes that are gone: of what they leased until their journal is replayed, and then of
   * the bounds of requests that were open.
   */
  unreturnedNano: Nano;
  /** max(0, limit - spent). */
  remainingNano: Nano;
  resetsAt: number | null;
}

/** Whose generations may be seen: a key sees its own; a management key those of its organization or one workspace. */
export interface Viewer {
  organizationId: string;
  keyId?: string;
  workspaceId?: string;
}

/** What is on its way into the database. */
export interface Backlog {
  /** Accepted requests that have no row yet. */
  open: number;
  /** Rows in memory; further ones may be in the journal only. */
  rows: number;
  journalBytes: number;
}

export interface Spend {
  /**
   * Holds `bound` in every budget or in none. Synchronous while the leases of this process cover it. Rejects with
   * GatewayError 503 when the database has to be asked and is down.
   * @param acceptedAt decides the windows
   */
  reserve(
    budgets: readonly Budget[],
    bound: Charge,
    acceptedAt: number,
  ): Reservation | Refusal | Promise<Reservation | Refusal>;
  /**
   * Writes the intent, with those of all other requests of this turn of the event loop. Rejects with GatewayError 503
   * (retryable) when it cannot be journalled or too much is waiting for the database.
   * @param wanted asked at the end of the turn; undefined when it is not: then nothing was begun, and the reservation stands
   */
  begin(
    accepted: Accepted,
    first: Attempt,
    reservation: Reservation,
    wanted: () => boolean,
  ): Promise<OpenGeneration | undefined>;
  /** The row, from memory while it is not in the database yet; undefined when unknown or not the viewer's. */
  findGeneration(id: string, viewer: Viewer): Promise<Generation | undefined>;
  /** By key id, an entry for every asked key. */
  usageOf(keyIds: readonly string[]): Promise<Map<string, KeyUsage>>;
  /**
   * Sums by day, model and endpoint, what this process has settled included. One process asks for one such sum after the
   * other; GatewayError 503 when too many wait.
   */
  activity(query: ActivityQuery): Promise<ActivitySum[]>;
  /** Tokens that an organization has used of each model in the last days (UTC), today included. */
  tokensByModel(organizationId: string, days: number): Promise<Map<string, number>>;
  stateOf(budgets: readonly Budget[]): Promise<BudgetState[]>;
  /** As it is now. */
  readonly backlog: Backlog;
  /** Resolves when everything settled so far is in the database. */
  flush(): Promise<void>;
  /** Flushes, returns the leases, removes the journal. With the database down it keeps the journal and resolves. */
  close(): Promise<void>;
}
