/** Reads the results of an upstream batch: each becomes the result of its item and a row of the ledger, in one transaction. */
import type { Caller } from '../../access/index.ts';
import { GatewayError } from '../../base/errors.ts';
import { type Candidate, settleBatched, WholeSink } from '../../inference/index.ts';
import type { UpstreamResult } from '../../providers/index.ts';
import type { Generation } from '../../spend/index.ts';
import type { Batch } from '../batch.ts';
import { acceptItem } from '../item.ts';
import { type ClaimedItem, type ItemResult, writeResults } from '../items.sql.ts';
import { completedResult, EXPIRED, failedResult, itemErrorOf } from '../results/result.ts';
import { lastCaller, type NativePart, positionOf } from './part.ts';
import * as sql from './parts.sql.ts';
import { type NativeParts, othersTurn, TURN_ITEMS } from './plan.ts';

/** Results that are settled together: a number, and bytes of responses. */
const TOGETHER = 64;
const TOGETHER_BYTES = 4 * 1024 * 1024;

interface ReadOptions {
  /** Items without a response may run one by one. */
  mayRunAgain: boolean;
  /** True if the batch is cancelled or its window is over: items without a response end with it. */
  isOver: boolean;
}

interface Settled {
  result: ItemResult;
  row: Generation | undefined;
}

export class ResultReader {
  readonly #part: NativePart;
  readonly #batch: Batch;
  readonly #candidate: Candidate;
  readonly #parts: NativeParts;
  readonly #options: ReadOptions;
  #waiting = new Map<number, UpstreamResult>();
  #waitingBytes = 0;
  /** Results of this part's items, and of others. */
  own = 0;
  foreign = 0;

  constructor(part: NativePart, batch: Batch, candidate: Candidate, parts: NativeParts, options: ReadOptions) {
    this.#part = part;
    this.#batch = batch;
    this.#candidate = candidate;
    this.#parts = parts;
    this.#options = options;
  }

  /** May be called again from the start: settled results stay. The first result of an item counts. */
  async read(results: AsyncIterable<UpstreamResult>, signal: AbortSignal): Promise<void> {
    for await (const result of results) {
      signal.throwIfAborted();
      const position = positionOf(this.#part.id, result.id);
      if (position === undefined) {
        this.foreign += 1;
        continue;
      }
      this.own += 1;
      if (this.#waiting.has(position)) continue;
      this.#waiting.set(position, result);
      if (result.kind === 'answered') this.#waitingBytes += result.body.length;
      if (this.#waiting.size >= TOGETHER || this.#waitingBytes >= TOGETHER_BYTES) await this.#settle();
    }
    await this.#settle();
  }

  async #settle(): Promise<void> {
    const { database, inference, clock } = this.#parts;
    const results = this.#waiting;
    this.#waiting = new Map();
    this.#waitingBytes = 0;
    const positions = [...results.keys()];
    if (positions.length === 0) return;
    const open = await sql.openItemsOf(database, this.#part, { positions, limit: positions.length });
    const again: number[] = [];
    const settled = new Map<number, Settled>();
    for (const [index, item] of open.entries()) {
      if (index % TURN_ITEMS === 0) await othersTurn();
      const outcome = await this.#outcome(item, results.get(item.position)!);
      if (outcome === 'again') again.push(item.position);
      else if (outcome !== 'left') settled.set(item.position, outcome);
    }
    if (settled.size > 0) {
      await inference.spend.holds.enter(this.#part.id, async (tx) => {
        const of = { positions: [...settled.keys()], limit: settled.size, lock: true };
        const still = (await sql.openItemsOf(tx, this.#part, of)).map(({ position }) => settled.get(position)!);
        await writeResults(
          tx,
          this.#batch.id,
          still.map(({ result }) => result),
        );
        return still.flatMap(({ row }) => row ?? []);
      });
    }
    if (again.length > 0) {
      const freeAt = new Date(clock.now());
      await sql.releaseItems(database, this.#batch.id, {
        ...{ claim: this.#part.id, freeAt, direct: true, positions: again },
      });
    }
  }

  /** `again`: it runs one by one. `left`: it ends with the batch. */
  async #outcome(item: ClaimedItem, result: UpstreamResult): Promise<Settled | 'again' | 'left'> {
    const { position } = item;
    const { mayRunAgain, isOver } = this.#options;
    switch (result.kind) {
      case 'answered': {
        const isPassing = result.status === 429 || result.status >= 500;
        return isPassing && mayRunAgain ? 'again' : this.#answered(item, result);
      }
      case 'expired':
        return isOver ? 'left' : { result: failedResult(position, EXPIRED), row: undefined };
      case 'cancelled':
        if (isOver) return 'left';
        return mayRunAgain ? 'again' : failure(position, 'the provider cancelled this request');
      case 'failed':
        return mayRunAgain ? 'again' : failure(position, result.message);
    }
  }

  async #answered(item: ClaimedItem, reply: { status: number; body: Buffer }): Promise<Settled> {
    const { inference } = this.#parts;
    const { caller, withheld } = await this.#caller();
    const sink = new WholeSink();
    let reason = withheld;
    let request = this.#accept(item, caller);
    if (request instanceof GatewayError) {
      reason ??= request;
      request = this.#accept(item, lastCaller(this.#batch, this.#part.keyId));
      if (request instanceof GatewayError)
        return { result: failedResult(item.position, itemErrorOf(request)), row: undefined };
    }
    const row = await settleBatched(sink.observed(request), reply, this.#candidate, sink, inference);
    reason ??=
      sink.failure ?? (sink.status === 200 ? undefined : new GatewayError('server', 'the answer could not be read'));
    // A provider that fails a request charges nothing for it.
    const result =
      reason === undefined
        ? completedResult(item.position, sink)
        : failedResult(item.position, itemErrorOf(reason), sink);
    return { result, row };
  }

  #accept({ body }: ClaimedItem, caller: Caller) {
    try {
      return acceptItem(body, this.#batch, caller, this.#part.createdAt.getTime());
    } catch (error) {
      if (error instanceof GatewayError) return error;
      throw error;
    }
  }

  /** The key must be valid when an answer is given out; what has run is paid in any case. */
  async #caller(): Promise<{ caller: Caller; withheld?: GatewayError }> {
    try {
      return { caller: await this.#parts.callerOfKey(this.#batch.keyHash) };
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status >= 500) throw error;
      return { caller: lastCaller(this.#batch, this.#part.keyId), withheld: error };
    }
  }
}

function failure(position: number, message: string): Settled {
  const error = new GatewayError('provider_unavailable', message);
  return { result: failedResult(position, itemErrorOf(error)), row: undefined };
}
