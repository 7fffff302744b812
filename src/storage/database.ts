/**
 * The PostgreSQL database (15 or newer; the SQL that 15 and 18 share). SQL is only in `store.ts` files,
 * `storage/` and `migrations/`.
 */
import pg from 'pg';
import { type Clock, sleep, waitAtMost } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { Availability } from './availability.ts';
import { clientConfig, type Target, withClient } from './connection.ts';
import type { Freshness } from './freshness.ts';
import { keepAlive } from './keep-alive.ts';
import { reachServer } from './server-check.ts';
import { errorCode, isConnectionLost, isNotRun, unavailable } from './unavailable.ts';

/**
 * A connection or transaction that statements run on. Columns arrive as: bigint -> bigint, numeric -> text, timestamptz ->
 * Date, date -> text, json and jsonb -> value, bytea -> Buffer; sessions are in UTC. A failure of the server's own is
 * thrown as pg's DatabaseError (`code` is the SQLSTATE), an unreachable server as GatewayError 503, retryable. Where the
 * connection is lost during a write or a commit, it is unknown whether it took place.
 */
export interface Queryable {
  /** One statement. */
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>;
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

export interface PooledDatabase extends Database {
  /**
   * The same database through connections that this one does not share. For work that transactions of this one wait for:
   * if they held every connection, the work would never end. The caller closes it.
   */
  apart(poolSize: number): Database;
}

/**
 * Tells every process of the installation what changed (`openChanges`). `announce` is called inside the writing
 * transaction; the notification leaves on commit. After the commit `settled` resolves when every process has handled it, or
 * `TRUST_MS` (3 s) later. A process that did not handle it by then reads the database before it decides anything; only if
 * it cannot reach it either does it use its memory, for at most `OUTAGE_GRACE_MS`. `settled` never rejects: the commit stands.
 */
export interface Changes {
  /** Asked before anything that is followed is used from memory. */
  readonly freshness: Freshness;
  /**
   * `changed` is called in every process (this one too) with the announced id; with null after a lost connection: forget
   * everything. It must be done with forgetting when it returns, or when the promise that it returns is fulfilled; a write
   * waits for that. What it still reads must not be used in its old form meanwhile.
   */
  subscribe(topic: string, changed: Changed): void;
  /** @param ids at most 1000 characters each */
  announce(tx: Queryable, topic: string, ...ids: readonly string[]): Promise<{ settled(): Promise<void> }>;
  close(): Promise<void>;
}

/** @param id null: anything may have changed */
export type Changed = ((id: string | null) => void) | ((id: string | null) => Promise<void>);

interface DatabaseOptions {
  target: Target;
  clock: Clock;
  log: Log;
  /** Most connections of this process; the embedded server admits 100 over all processes. Default 10. */
  poolSize?: number;
  /** How long the first connection is tried for, e.g. while the server's container starts. Default 15 s. */
  startTimeoutMs?: number;
}

const DEFAULT_POOL_SIZE = 10;
const IDLE_CONNECTION_MS = 30_000;
/** Statements that may wait for a connection; more are refused at once. */
const MAX_WAITING = 1_000;
const CLOSE_TIMEOUT_MS = 5_000;
const TRANSACTION_RETRIES = 3;
const RETRY_DELAY_MS = 10;
const SERIALIZATION_FAILURE = '40001';
const DEADLOCK = '40P01';

/** Connects; rejects with a message for the operator when the server cannot be used. */
export async function openDatabase(options: DatabaseOptions): Promise<PooledDatabase> {
  await reachServer(options);
  return new Pool(options);
}

class Pool implements PooledDatabase {
  readonly #options: DatabaseOptions;
  readonly #pool: pg.Pool;
  readonly #availability: Availability;
  readonly #clock: Clock;
  #closing: Promise<void> | undefined;

  constructor(options: DatabaseOptions) {
    const { target, clock, log, poolSize = DEFAULT_POOL_SIZE } = options;
    this.#options = options;
    this.#clock = clock;
    this.#availability = new Availability(() => withClient(target, (client) => client.query('select 1')), clock, log);
    this.#pool = new pg.Pool({ ...clientConfig(target), max: poolSize, idleTimeoutMillis: IDLE_CONNECTION_MS });
    // A connection may die idle or while it is in use; without a listener either would end the process.
    this.#pool.on('error', (error) => this.#availability.lost(error));
    this.#pool.on('connect', (client) => client.on('error', (error) => this.#availability.lost(error)));
  }

  get up(): boolean {
    return this.#availability.up;
  }

  async query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]> {
    const connection = await this.#acquire();
    try {
      return rowsOf(await connection.query(text, values ?? []));
    } finally {
      connection.release();
    }
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#transactionOnce(work);
      } catch (error) {
        const code = errorCode(error);
        if ((code !== SERIALIZATION_FAILURE && code !== DEADLOCK) || attempt > TRANSACTION_RETRIES) throw error;
        await sleep(this.#clock, RETRY_DELAY_MS * attempt * (1 + Math.random()));
      }
    }
  }

  apart(poolSize: number): Database {
    return new Pool({ ...this.#options, poolSize });
  }

  close(): Promise<void> {
    this.#closing ??= keepAlive(async () => {
      this.#availability.close();
      // Statements in flight end first; one that hangs does not keep us.
      await waitAtMost(this.#clock, CLOSE_TIMEOUT_MS, this.#pool.end());
    });
    return this.#closing;
  }

  async #transactionOnce<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    const connection = await this.#acquire();
    try {
      return await inTransaction(connection, work);
    } finally {
      connection.release();
    }
  }

  async #acquire(): Promise<Connection> {
    return new Connection(await this.#checkOut(), () => this.#checkOut(), this.#availability);
  }

  async #checkOut(): Promise<pg.PoolClient> {
    await this.#availability.ready();
    if (this.#pool.waitingCount >= MAX_WAITING) throw unavailable('too many statements wait for the database');
    try {
      return await this.#pool.connect();
    } catch (error) {
      if ((error as Error).message === 'timeout exceeded when trying to connect') {
        throw unavailable('the database is too busy', error);
      }
      this.#availability.lost(error);
    }
    // A server that is just being restarted is waited for once.
    await this.#availability.ready();
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw unavailable('the database cannot be reached', error);
    }
  }
}

/** A checked-out connection whose errors are ours. */
class Connection {
  readonly #replace: () => Promise<pg.PoolClient>;
  readonly #availability: Availability;
  #client: pg.PoolClient | undefined;
  #used = false;
  #useless = false;

  constructor(client: pg.PoolClient, replace: () => Promise<pg.PoolClient>, availability: Availability) {
    this.#client = client;
    this.#replace = replace;
    this.#availability = availability;
  }

  async query(text: string, values: readonly unknown[]): Promise<pg.QueryResult> {
    if (!this.#client) throw new Error('a statement came after the end of its transaction');
    const first = !this.#used;
    this.#used = true;
    try {
      return await this.#client.query(text, values as unknown[]);
    } catch (error) {
      if (!isConnectionLost(error)) throw error;
      this.#availability.lost(error);
      this.#useless = true;
      if (first && isNotRun(error)) return this.#again(text, values);
      throw unavailable('the database cannot be reached', error);
    }
  }

  discard(): void {
    this.#useless = true;
  }

  /** A text of several statements that failed may leave its transaction open; such a connection is of no use to others. */
  release(): void {
    this.#client?.release(this.#useless || this.#client.getTransactionStatus() !== 'I');
    this.#client = undefined;
  }

  /** The connection was lost while idle in the pool, which affects no caller. */
  async #again(text: string, values: readonly unknown[]): Promise<pg.QueryResult> {
    this.release();
    this.#client = await this.#replace();
    this.#useless = false;
    return this.query(text, values);
  }
}

/** The driver answers several statements with a list of results. */
function rowsOf<Row>(result: pg.QueryResult | pg.QueryResult[]): Row[] {
  return Array.isArray(result) ? result.flatMap(({ rows }) => rows as Row[]) : (result.rows as Row[]);
}

async function inTransaction<T>(connection: Connection, work: (tx: Queryable) => Promise<T>): Promise<T> {
  await connection.query('begin', []);
  const tx = new Transaction(connection);
  try {
    const result = await work(tx);
    const { command } = await connection.query('commit', []);
    // The server answers COMMIT of a failed transaction with ROLLBACK and no error.
    if (command === 'ROLLBACK') throw new Error('a statement of the transaction had failed, so it was rolled back');
    return result;
  } catch (error) {
    // What cannot be rolled back must not go back into the pool.
    await connection.query('rollback', []).catch(() => connection.discard());
    throw error;
  } finally {
    tx.end();
  }
}

class Transaction implements Queryable {
  readonly #connection: Connection;
  #ended = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]> {
    return rowsOf(await this.#run(text, values ?? []));
  }

  end(): void {
    this.#ended = true;
  }

  #run(text: string, values: readonly unknown[]): Promise<pg.QueryResult> {
    if (this.#ended) return Promise.reject(new Error('a statement came after the end of its transaction'));
    return this.#connection.query(text, values);
  }
}
