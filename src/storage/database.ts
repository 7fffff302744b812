/**
 * The PostgreSQL behind everything (15 or newer; the subset of SQL that 15 and 18 share). Contract; the implementation
 * follows. SQL stands in `store.ts` files, `storage/` and `migrations/` only.
 */
import type { Kysely } from 'kysely';

// biome-ignore lint/suspicious/noExplicitAny: a store types its own tables with `db.withTables<...>()`.
export type Tables = any;

/** A connection or transaction that statements run on. bigint columns arrive as JavaScript bigint. */
export interface Queryable {
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Kysely bound to the same connection, for control-plane statements. */
  readonly kysely: Kysely<Tables>;
}

export interface Database extends Queryable {
  /**
   * Runs `work` in one transaction; rolls back when it throws. Retries serialization failures and deadlocks (40001,
   * 40P01) up to three times, so `work` must not have effects outside the database.
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>;
  /** False while the server cannot be reached; statements then reject with GatewayError 503, retryable. */
  readonly up: boolean;
  close(): Promise<void>;
}

/**
 * Tells every process of the installation what changed, over LISTEN/NOTIFY. `announce` is called inside the writing
 * transaction; the notification leaves on commit. After the commit `settled` resolves when every live process has
 * acknowledged it, or its lease (2 s at most) has run out, so that a write can answer only once it holds everywhere.
 */
export interface Changes {
  /** `changed` is called in every process (this one too) with the announced id; with null after a lost connection: forget everything. */
  subscribe(topic: string, changed: (id: string | null) => void): void;
  announce(tx: Queryable, topic: string, id: string): Promise<{ settled(): Promise<void> }>;
  close(): Promise<void>;
}
