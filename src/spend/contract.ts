/** The interface of spend: reservations, open generations and queries about money. `index.ts` describes their use. */
import type { Nano } from '../base/money.ts';
import type { Usage } from '../formats/conversation/conversation.ts';
import type { Queryable } from '../storage/database.ts';
import type { ActivityQuery, ActivitySum } from './activity/store.ts';
import type { Budget, Charge, Interval, Refusal } from './budget.ts';
import type { Accepted, Generation } from './generation.ts';
import type { Holds } from './holds/holds.ts';
import type { Attempt } from './record.ts';

/** A request's share of each of its budgets, held until it is settled or released; later calls do nothing. */
export interface Reservation {
  readonly refused?: undefined;
  /** The bound that is currently held. */
  readonly held: Charge;
  /**
   * Adds `more` to the hold, in all budgets or in none; a refusal leaves it as it is. A running request grows within
   * this process's leases under the limit that it was accepted with. Returns a promise only if the database is needed.
   */
  extend(more: Charge): true | Refusal | Promise<true | Refusal>;
  /** Releases the hold. For requests that end before `begin`. */
  release(): void;
}

/** An accepted request from dispatch until its row is entered. */
export interface OpenGeneration {
  /**
   * Call before each further dispatch. Throws GatewayError 503 if the journal cannot be written: do not dispatch then.
   */
  attempt(attempt: Attempt): void;
  /**
   * Reports the total bytes of generated text in this attempt; cheap enough for every event. The first call is
   * journaled on return, later ones within 50 ms.
   */
  seen(outputBytes: number): void;
  /** The upstream reported usage, worth `charge` so far (this attempt and earlier ones). */
  reported(usage: Usage, charge: Charge): void;
  /**
   * Enters the row and settles the reservation at its cost. Call it exactly once; a second call is a bug and throws.
   * @param written called once the row is in the kernel's page cache, at the latest at the end of this event loop turn;
   * send the answer's last byte only after that
   */
  settle(row: Generation, written?: () => void): void;
  /**
   * Hands the request over to a hold with the request's id, in one transaction with `also`. From then on the journal does not
   * know of it: `settle` only calls `written`, and `holds.settle` enters the row, in any process. If this rejects, the request
   * is open as before, without its reservation. No further attempt may follow.
   */
  handOver(also: (tx: Queryable) => Promise<void>): Promise<void>;
}

/** Totals of one key in nano-dollars. */
export interface KeyUsage {
  usage: Record<Interval, Nano>;
  byok: Record<Interval, Nano>;
}

/** State of one budget, for GET /budget and `limit_remaining`. */
export interface BudgetState {
  budget: Budget;
  spentNano: Nano;
  /** Leased by processes, for running requests or idle; not spent yet. */
  leasedNano: Nano;
  /**
   * The part of `leasedNano` of dead processes: all of their leases until their journal is replayed, then the cost
   * bounds of the requests they had open.
   */
  unreturnedNano: Nano;
  /** max(0, limit - spent). */
  remainingNano: Nano;
  resetsAt: number | null;
}

/**
 * Restricts which generations are visible: a key sees its own, a management key those of its organization or one
 * workspace.
 */
export interface Viewer {
  organizationId: string;
  keyId?: string;
  workspaceId?: string;
}

/** Work that is not in the database yet. */
export interface Backlog {
  /** Accepted requests without a row. */
  open: number;
  /** Rows in memory; more may be in the journal only. */
  rows: number;
  journalBytes: number;
}

export interface Spend {
  /** Reservations that outlive this process. */
  readonly holds: Holds;
  /**
   * Holds `bound` in every budget or in none. Synchronous while this process's leases cover it. Rejects with
   * GatewayError 503 if the database is needed and down.
   * @param acceptedAt decides the windows
   */
  reserve(
    budgets: readonly Budget[],
    bound: Charge,
    acceptedAt: number,
  ): Reservation | Refusal | Promise<Reservation | Refusal>;
  /**
   * Journals the intent, together with those of all other requests of this event loop turn. Rejects with GatewayError
   * 503 (retryable) if it cannot be journaled or too much is waiting for the database.
   * @param wanted checked at the end of the turn; if false, the result is undefined, nothing has begun, and the
   *   reservation stays
   */
  begin(
    accepted: Accepted,
    first: Attempt,
    reservation: Reservation,
    wanted: () => boolean,
  ): Promise<OpenGeneration | undefined>;
  /** The row, from memory if it is not in the database yet; undefined if unknown or not visible to the viewer. */
  findGeneration(id: string, viewer: Viewer): Promise<Generation | undefined>;
  /** By key id, with an entry for every requested key. */
  usageOf(keyIds: readonly string[]): Promise<Map<string, KeyUsage>>;
  /**
   * Totals by day, model and endpoint, including everything this process has settled. A process runs one such query at
   * a time; GatewayError 503 if too many wait.
   */
  activity(query: ActivityQuery): Promise<ActivitySum[]>;
  /** Tokens that an organization has used per model in the last `days` UTC days, including today. */
  tokensByModel(organizationId: string, days: number): Promise<Map<string, number>>;
  stateOf(budgets: readonly Budget[]): Promise<BudgetState[]>;
  /** Of this process, as in `listProcesses`. */
  readonly processId: string;
  /** Current values. */
  readonly backlog: Backlog;
  /** Resolves when everything settled so far is in the database. */
  flush(): Promise<void>;
  /** Flushes, returns the leases and removes the journal. If the database is down it keeps the journal and resolves. */
  close(): Promise<void>;
}
