/**
 * Assigns the items of a batch to native batches: prepares each item as if it ran now, and stores the calls of one upstream
 * batch as a blob, from which it is submitted. Items that no batch interface can take are left to run one by one.
 */
import type { Caller } from '../../access/index.ts';
import type { Timer } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { uuidv7 } from '../../base/ids.ts';
import type { Blobs } from '../../blobs/index.ts';
import {
  type BatchableCall,
  encodeForBatch,
  fingerprint,
  hasBatches,
  type InferenceParts,
} from '../../inference/index.ts';
import type { BatchService } from '../../providers/index.ts';
import type { HoldDraft, Reservation } from '../../spend/index.ts';
import type { Queryable } from '../../storage/database.ts';
import type { Batch } from '../batch.ts';
import { acceptItem } from '../item.ts';
import { type ClaimedItem, type ItemResult, putBack, renewClaim, writeResults } from '../items.sql.ts';
import { failedResult, itemErrorOf } from '../results/result.ts';
import { retryDelayMs } from '../running/pace.ts';
import type { RunParts } from '../running/run.ts';
import { markSeen } from '../store.ts';
import { itemId, type NativePart } from './part.ts';
import * as sql from './parts.sql.ts';

export interface NativeParts extends RunParts {
  blobs: Blobs;
}

/** As in `run.ts`: another process replaces a killed one after about 12 s. */
const CLAIM_MS = 10_000;
const RENEW_MS = 2_500;
const TAKEN_AT_ONCE = 64;
/** After so many items other work of the process gets a turn: each takes about a millisecond. */
export const TURN_ITEMS = 4;
const TAKEN_BYTES = 4 * 1024 * 1024;
/** The end of a native batch of the same batch ends the wait. */
const WAIT_FOR_BUDGET_MS = 60_000;
/** A native batch keeps its items until it gives them up; longer than any takes. */
const KEPT_MS = 7 * 24 * 3_600_000;

/** Whether some item of the batch may run in a batch interface. */
export function mayRunNatively({ model }: Pick<Batch, 'model'>, { catalog }: Pick<InferenceParts, 'catalog'>): boolean {
  if (model !== null) return catalog().find(model)?.endpoints.some(hasBatches) ?? false;
  return catalog().providers.some(({ kind }) => kind.batches !== undefined);
}

/**
 * Plans the remaining items of a batch, unless another process does. `start` sends the first job of a new part.
 * @returns the milliseconds after which planning can continue, because a rate limit or a budget is reached
 */
export async function planNative(
  batch: Batch,
  parts: NativeParts,
  start: (tx: Queryable, partId: string) => Promise<void>,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { database, clock, claimTime } = parts;
  const claim = uuidv7(clock.now());
  const renewed = () => ({ claim, now: new Date(claimTime.now()), until: new Date(clock.now() + CLAIM_MS) });
  if (!(await sql.takePlan(database, batch.id, renewed()))) return undefined;
  let assembly: Assembly | undefined;
  const timer: Timer = clock.timer(RENEW_MS, () => {
    timer.refresh();
    sql.takePlan(database, batch.id, renewed()).catch(() => {});
    markSeen(database, batch.id, new Date(clock.now())).catch(() => {});
    if (assembly) renewClaim(database, batch.id, assembly.id, renewed().until).catch(() => {});
  });
  try {
    for (;;) {
      assembly = new Assembly(batch, parts, signal);
      const made = await assembly.assemble(start);
      if (assembly.pauseMs !== undefined) return assembly.pauseMs;
      if (made) continue;
      await sql.endPlan(database, batch.id);
      return undefined;
    }
  } finally {
    timer.cancel();
    await sql.leavePlan(database, batch.id, claim).catch(() => {});
  }
}

/** Puts one native batch together. */
class Assembly {
  readonly id: string;
  /** Set when a rate limit or a budget refuses more for now. */
  pauseMs: number | undefined;
  readonly #batch: Batch;
  readonly #parts: NativeParts;
  readonly #signal: AbortSignal;
  readonly #hold: HoldDraft;
  /** The first call: all others go to the same place. */
  #first: BatchableCall | undefined;
  #keyId = '';
  #items = 0;
  #bytes = 0;
  #isFull = false;
  #failed: ItemResult[] = [];

  constructor(batch: Batch, parts: NativeParts, signal: AbortSignal) {
    this.#batch = batch;
    this.#parts = parts;
    this.#signal = signal;
    this.#hold = parts.inference.spend.holds.draft();
    this.id = uuidv7(parts.clock.now());
  }

  /** False: no item is left for a native batch. */
  async assemble(start: (tx: Queryable, partId: string) => Promise<void>): Promise<boolean> {
    const { database, blobs, clock } = this.#parts;
    const release = (direct: boolean) =>
      sql.releaseItems(database, this.#batch.id, { claim: this.id, freeAt: new Date(clock.now()), direct });
    let isKept = false;
    try {
      const content = this.#content();
      const begin = await content.next();
      if (begin.done) return false;
      const blob = await blobs.write(resumed(begin.value, content));
      if (this.#items < (this.#service.limits.least ?? 1)) {
        await release(true);
        await blobs.drop(database, blob.id);
        return true;
      }
      isKept = true;
      await this.#hold.keep(this.id, async (tx) => {
        await blobs.keep(tx, blob.id);
        await sql.insertPart(tx, this.#part(blob.id, blob.bytes));
        const until = new Date(this.#batch.expiresAt.getTime() + KEPT_MS);
        const kept = await sql.keepItems(tx, this.#batch.id, this.id, until);
        if (kept !== this.#items) throw new Error('items of a native batch were taken by another process');
        await start(tx, this.id);
      });
      return true;
    } catch (error) {
      await release(false).catch(() => {});
      throw error;
    } finally {
      if (!isKept) this.#hold.release();
    }
  }

  get #service(): BatchService {
    return this.#first!.candidate.endpoint.provider.kind.batches!;
  }

  #part(blobId: string, bytes: number): NativePart {
    const { candidate, call } = this.#first!;
    const { endpoint, byok, credentialId } = candidate;
    const at = endpoint.provider.credentials.findIndex(
      (_, index) => `${endpoint.provider.id}#${index}` === credentialId,
    );
    return {
      ...{ id: this.id, batchId: this.#batch.id, keyId: this.#keyId, items: this.#items, bytes, blobId },
      ...{ endpointId: endpoint.id, model: endpoint.modelId, format: call.format, path: call.path },
      credential: byok === undefined ? fingerprint(endpoint.provider.credentials[at] ?? null) : '',
      byokId: byok?.id ?? null,
      createdAt: new Date(this.#parts.clock.now()),
      ...{ beganAt: null, triedAt: null, uploadId: null, upstreamId: null },
      ...{ notOurs: [], cancelled: false, failures: 0, polls: 0, turn: 0 },
    };
  }

  /** The upload. Ends when it is full, or no item is left. */
  async *#content(): AsyncGenerator<Buffer, void, undefined> {
    for (let after = -1; !this.#isFull && this.pauseMs === undefined; ) {
      const taken = await this.#take(after);
      if (taken.length === 0) break;
      after = taken.at(-1)!.position;
      for (const [index, item] of taken.entries()) {
        this.#signal.throwIfAborted();
        const line = this.#isFull || this.pauseMs !== undefined ? await this.#later(item) : await this.#lineOf(item);
        if (line !== undefined) yield line;
        if (index % TURN_ITEMS === 0) await othersTurn();
      }
      await this.#writeFailed();
    }
    if (this.#first !== undefined) yield Buffer.from(this.#frame.tail);
  }

  async #take(after: number): Promise<ClaimedItem[]> {
    const { database, clock, claimTime } = this.#parts;
    const [now, until] = [new Date(claimTime.now()), new Date(clock.now() + CLAIM_MS)];
    const most = { count: TAKEN_AT_ONCE, bytes: TAKEN_BYTES };
    const choice = { claim: this.id, now, until, after, ...most };
    return database.transaction((tx) => sql.takeForPart(tx, this.#batch.id, choice));
  }

  get #frame(): ReturnType<BatchService['frame']> {
    return this.#service.frame({ marker: this.id, model: this.#first!.call.model });
  }

  /** The item as a part of the upload; undefined if it cannot be one. */
  async #lineOf(item: ClaimedItem): Promise<Buffer | undefined> {
    const { callerOfKey, inference, clock } = this.#parts;
    let caller: Caller;
    let prepared: BatchableCall | undefined;
    let reservation: Reservation | undefined;
    try {
      caller = await callerOfKey(this.#batch.keyHash);
      prepared = await encodeForBatch(acceptItem(item.body, this.#batch, caller, clock.now()), inference);
      if (prepared === undefined) return this.#direct(item);
      if (!this.#goesAlong(prepared)) return this.#later(item);
      reservation = await prepared.reserve();
    } catch (error) {
      return this.#refused(item, error);
    }
    if (reservation === undefined) return this.#unaffordable(item);
    const isFirst = this.#first === undefined;
    if (isFirst) {
      this.#first = this.#placed(prepared);
      this.#keyId = caller.keyId;
    }
    const { head, between, tail } = this.#frame;
    const line = Buffer.concat([
      Buffer.from(isFirst ? head : between),
      this.#service.line(itemId(this.id, item.position), prepared.call),
    ]);
    const { limits } = this.#service;
    if (this.#bytes + line.length + tail.length > limits.bytes) {
      reservation.release();
      if (isFirst) this.#first = undefined;
      else this.#isFull = true;
      return isFirst ? this.#direct(item) : this.#later(item);
    }
    this.#hold.add(reservation);
    this.#items += 1;
    this.#bytes += line.length;
    if (this.#items === limits.items) this.#isFull = true;
    return line;
  }

  /** All calls of a native batch carry the same credential. */
  #placed(prepared: BatchableCall): BatchableCall {
    const { candidate } = prepared;
    if (candidate.byok !== undefined) return prepared;
    const { id } = this.#parts.inference.credentials.choose(candidate);
    return { ...prepared, candidate: { ...candidate, credentialId: id } };
  }

  #goesAlong({ candidate, call }: BatchableCall): boolean {
    const first = this.#first;
    if (first === undefined) return true;
    return (
      candidate.endpoint.id === first.candidate.endpoint.id &&
      candidate.byok?.id === first.candidate.byok?.id &&
      call.format === first.call.format &&
      call.path === first.call.path
    );
  }

  async #refused(item: ClaimedItem, error: unknown): Promise<undefined> {
    if (!(error instanceof GatewayError)) throw error;
    if (error.status === 429) {
      this.pauseMs = retryDelayMs(1, error.details.retryAfterSeconds);
      return this.#later(item);
    }
    if (error.status >= 500) throw error;
    this.#failed.push(failedResult(item.position, itemErrorOf(error)));
    return undefined;
  }

  /** What others of the batch hold of the budget is mostly more than they will have cost. */
  async #unaffordable(item: ClaimedItem): Promise<undefined> {
    const { database, clock } = this.#parts;
    const isEarly = clock.now() < (this.#batch.createdAt.getTime() + this.#batch.expiresAt.getTime()) / 2;
    const holds = this.#items > 0 || (await sql.hasParts(database, this.#batch.id));
    if (!isEarly || !holds) return this.#direct(item);
    this.pauseMs = WAIT_FOR_BUDGET_MS;
    return this.#later(item);
  }

  async #direct({ position }: ClaimedItem): Promise<undefined> {
    const { database, clock } = this.#parts;
    const of = { claim: this.id, freeAt: new Date(clock.now()), direct: true, positions: [position] };
    await sql.releaseItems(database, this.#batch.id, of);
  }

  /** For another native batch. */
  async #later({ position }: ClaimedItem): Promise<undefined> {
    const { database, clock } = this.#parts;
    const back = { positions: [position], freeAt: new Date(clock.now()), attempts: 0 };
    await putBack(database, this.#batch.id, this.id, back);
  }

  async #writeFailed(): Promise<void> {
    const results = this.#failed.splice(0);
    if (results.length === 0) return;
    await this.#parts.database.transaction((tx) => writeResults(tx, this.#batch.id, results));
  }
}

/** Lets waiting work of the event loop run. */
export function othersTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

async function* resumed(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* rest;
}
