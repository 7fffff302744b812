/** Writes the results of a batch in this process, those that arrive together in one statement. */
import { type Clock, sleep } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Database } from '../../storage/database.ts';
import * as items from '../items.sql.ts';
import { failedResult, itemErrorOf } from './result.ts';

const WRITE_AGAIN_MS = 500;

interface WriterParts {
  database: Database;
  clock: Clock;
  log: Log;
}

export class ResultWriter {
  readonly #batchId: string;
  readonly #parts: WriterParts;
  readonly #signal: AbortSignal;
  #results: items.ItemResult[] = [];
  /**
   * Results that the database has refused once although they were written alone, perhaps only because of a deadlock.
   */
  readonly #refused = new WeakSet<items.ItemResult>();
  #writing: Promise<void> | undefined;
  /** The database takes no results at the moment: nothing further should run. */
  failing = false;

  /** @param signal aborted when the process closes: what cannot be written then is given up, and the items run again */
  constructor(batchId: string, parts: WriterParts, signal: AbortSignal) {
    this.#batchId = batchId;
    this.#parts = parts;
    this.#signal = signal;
  }

  add(result: items.ItemResult): void {
    this.#results.push(result);
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Resolves when everything is written or given up. Never rejects. */
  async written(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#results.length > 0) {
      const results = this.#results;
      this.#results = [];
      try {
        await this.#write(results);
        this.failing = false;
      } catch (error) {
        this.failing = error instanceof GatewayError;
        if (!(error instanceof GatewayError)) await this.#writeEach(results);
        else if (!this.#signal.aborted) {
          // They are paid for: the process keeps them until the database is back.
          this.#results.unshift(...results);
          await sleep(this.#parts.clock, WRITE_AGAIN_MS);
        }
      }
    }
  }

  /**
   * Keeps what the database refuses of one result from the others. A result that is refused twice fails its item: running the
   * item again would not help.
   */
  async #writeEach(results: readonly items.ItemResult[]): Promise<void> {
    const again: items.ItemResult[] = [];
    for (const result of results) {
      try {
        await this.#write([result]);
      } catch (cause) {
        const isRefused = !(cause instanceof GatewayError);
        if (isRefused && this.#refused.has(result)) await this.#giveUp(result, cause);
        else again.push(result);
        if (isRefused) this.#refused.add(result);
      }
    }
    if (again.length === 0) return;
    this.#results.unshift(...again);
    await sleep(this.#parts.clock, WRITE_AGAIN_MS);
  }

  async #giveUp({ position, usage }: items.ItemResult, cause: unknown): Promise<void> {
    this.#parts.log.error('a result of a batch cannot be stored', { batch: this.#batchId, position, cause });
    const failure = itemErrorOf(new GatewayError('server', 'the result of this request could not be stored'));
    await this.#write([{ ...failedResult(position, failure), usage }]).catch(() => {});
  }

  #write(results: readonly items.ItemResult[]): Promise<void> {
    return this.#parts.database.transaction((tx) => items.writeResults(tx, this.#batchId, results));
  }
}
