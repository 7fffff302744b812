/**
 * Takes a native batch through its life at the provider: submit, poll, read, end. Each step is one run of a job. Before anything
 * is sent, the database says that it may have been; after a crash the provider is searched for our marker.
 */
import type { Clock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Candidate } from '../../inference/index.ts';
import { type BatchAbout, BatchRefusal, type UpstreamBatch } from '../../providers/index.ts';
import type { Queryable } from '../../storage/database.ts';
import { type Batch, isTerminal } from '../batch.ts';
import { writeResults } from '../items.sql.ts';
import { failedResult, itemErrorOf } from '../results/result.ts';
import { findBatch, recordUpstream } from '../store.ts';
import { mayHaveData, type NativePart, placeOf, providerNameOf } from './part.ts';
import * as sql from './parts.sql.ts';
import type { NativeParts } from './plan.ts';
import { ResultReader } from './read.ts';
import { rebuildContent } from './rebuild.ts';

/** `over`: the part is deleted. Otherwise the milliseconds until the next step. */
type Next = 'over' | number;

const FIRST_POLL_MS = 1_000;
const LONGEST_POLL_MS = 60_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 300_000;
/** Failures in a row after which a part is abandoned that was not submitted. */
const MOST_FAILURES = 8;
/** How long a request may take effect after its connection broke. */
const UNSETTLED_MS = 30_000;
const FIND_AGAIN_MS = 5_000;
/** How long after the window of the batch the provider may still say how it ended. */
const GRACE_MS = 24 * 3_600_000;
const WRITTEN_AT_ONCE = 500;

/** The dependencies of a step. */
interface Step {
  part: NativePart;
  batch: Batch;
  /** Resolves if this process still has the part, and rejects otherwise. */
  change(change: Parameters<typeof sql.changePart>[3]): Promise<void>;
  signal: AbortSignal;
}

export class NativeFollower {
  readonly #parts: NativeParts;
  /** Wakes up the batch when a part of it has ended. */
  readonly #ended: (tx: Queryable, batchId: string) => Promise<void>;

  constructor(parts: NativeParts, ended: (tx: Queryable, batchId: string) => Promise<void>) {
    this.#parts = parts;
    this.#ended = ended;
  }

  async step(part: NativePart, claim: string, signal: AbortSignal): Promise<Next> {
    const { database } = this.#parts;
    const batch = await findBatch(database, part.batchId);
    if (batch === undefined) return this.#orphaned(part);
    const change: Step['change'] = async (changes) => {
      await sql.changePart(database, part.id, claim, changes);
      Object.assign(part, changes);
    };
    const step = { part, batch, change, signal };
    try {
      return part.upstreamId === null ? await this.#submit(step) : await this.#follow(step, part.upstreamId);
    } catch (error) {
      return this.#failed(step, error);
    }
  }

  get #clock(): Clock {
    return this.#parts.clock;
  }

  // Submission.

  async #submit(step: Step): Promise<Next> {
    const { part } = step;
    if (part.triedAt !== null) {
      const found = await this.#find(step);
      if (found !== undefined) return this.#submitted(step, found.id, found.isCertain);
      if (this.#clock.now() - part.triedAt.getTime() < UNSETTLED_MS) return FIND_AGAIN_MS;
      if (part.failures >= MOST_FAILURES) return this.#end(step, { state: 'failed', message: 'it cannot be reached' });
    }
    if (isOver(step.batch, this.#clock)) return this.#end(step, undefined);
    const isRepeated = part.beganAt !== null;
    await step.change({ beganAt: part.beganAt ?? new Date(this.#clock.now()), triedAt: null });
    const { candidate, service, account } = placeOf(part, step.batch, this.#parts.inference);
    const id = await service.submit(
      {
        ...aboutOf(part, candidate),
        isRepeated,
        get bytes() {
          return part.bytes;
        },
        content: () => this.#content(step),
        uploadId: part.uploadId,
        uploaded: (uploadId) => step.change({ uploadId }),
        creating: () => step.change({ triedAt: new Date(this.#clock.now()) }),
      },
      account,
    );
    return this.#submitted(step, id, true);
  }

  async #content(step: Step): Promise<AsyncIterable<Buffer>> {
    const { part, batch } = step;
    const { database, blobs, inference } = this.#parts;
    try {
      return await blobs.read(part.blobId);
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status !== 500) throw error;
    }
    const { service } = placeOf(part, batch, inference);
    const { blob, items } = await rebuildContent(part, batch, service, this.#parts);
    const before = part.blobId;
    await step.change({ blobId: blob.id, bytes: blob.bytes, items });
    await database.transaction(async (tx) => {
      await blobs.keep(tx, blob.id);
      await blobs.drop(tx, before);
    });
    return blobs.read(blob.id);
  }

  /** The upstream batch that an earlier attempt created. */
  async #find({ part, batch }: Step): Promise<{ id: string; isCertain: boolean } | undefined> {
    const { candidate, service, account } = placeOf(part, batch, this.#parts.inference);
    const found = await service.find(aboutOf(part, candidate), part.uploadId, account);
    const known = await sql.knownUpstream(this.#parts.database, part.id, found);
    const id = found.find((each) => !known.has(each) && !part.notOurs.includes(each));
    return id === undefined ? undefined : { id, isCertain: service.storesMarker };
  }

  /** @param isCertain false: it may be another client's batch in the account, which only its results show */
  async #submitted(step: Step, upstreamId: string, isCertain: boolean): Promise<Next> {
    await step.change({ upstreamId, failures: 0, ...(isCertain && { triedAt: null }) });
    this.#log('a native batch was submitted', step.part);
    return FIRST_POLL_MS;
  }

  // After it.

  async #follow(step: Step, upstreamId: string): Promise<Next> {
    const { part, batch } = step;
    const { service, account } = placeOf(part, batch, this.#parts.inference);
    const isCertain = part.triedAt === null;
    if (isOver(batch, this.#clock) && !part.cancelled && isCertain) {
      await service.cancel(upstreamId, account);
      await step.change({ cancelled: true });
    }
    const upstream = await service.poll(upstreamId, account);
    if (upstream.state === 'running') {
      await step.change({ polls: part.polls + 1, failures: 0 });
      if (this.#clock.now() > batch.expiresAt.getTime() + GRACE_MS) return this.#end(step, undefined);
      return Math.min(LONGEST_POLL_MS, FIRST_POLL_MS * 2 ** Math.min(part.polls, 10));
    }
    if (upstream.state !== 'failed' || upstream.outputs.length > 0) {
      const isOurs = await this.#read(step, upstream);
      if (!isOurs) {
        await step.change({ upstreamId: null, notOurs: [...part.notOurs, upstreamId] });
        return 0;
      }
    }
    return this.#end(step, upstream, await this.#remove(step, upstream));
  }

  /** False: the provider keeps something. @param upstream null: no batch was created */
  async #remove({ part, batch }: Step, upstream: UpstreamBatch | null): Promise<boolean> {
    try {
      const { service, account } = placeOf(part, batch, this.#parts.inference);
      return await service.remove(upstream, part.uploadId, account);
    } catch (error) {
      this.#parts.inference.log.warn('a provider keeps the data of a batch', { native: part.id, error });
      return false;
    }
  }

  /** False: the results are those of another batch, which was taken for this one. */
  async #read({ part, batch, signal }: Step, upstream: UpstreamBatch): Promise<boolean> {
    const { candidate, service, account } = placeOf(part, batch, this.#parts.inference);
    const ends = isOver(batch, this.#clock);
    const options = { mayRunAgain: fallsBack(batch) && !ends, isOver: ends };
    const reader = new ResultReader(part, batch, candidate, this.#parts, options);
    await reader.read(service.results(upstream, account), signal);
    if (reader.foreign > 0)
      this.#log('the results of a native batch have unknown ids', part, { own: reader.own, unknown: reader.foreign });
    return reader.own > 0 || reader.foreign === 0;
  }

  /** The items without a result run one by one, fail, or end with the batch; then nothing of the part is left. */
  async #end(
    step: Step,
    upstream: Pick<UpstreamBatch, 'state' | 'message'> | undefined,
    isRemoved = false,
  ): Promise<Next> {
    const { part, batch } = step;
    const { database, inference, blobs } = this.#parts;
    const isOnlyUpload = part.upstreamId === null && part.uploadId !== null && part.triedAt === null;
    const isGone = isOnlyUpload ? await this.#remove(step, null) : isRemoved;
    const freeAt = new Date(this.#clock.now());
    const isWanted = !isOver(batch, this.#clock);
    if (isWanted && !fallsBack(batch)) await this.#failOpen(part, batch, upstream?.message);
    await database.transaction(async (tx) => {
      await sql.releaseItems(tx, batch.id, { claim: part.id, freeAt, direct: true });
      await inference.spend.holds.release(tx, part.id);
      await blobs.drop(tx, part.blobId);
      await sql.deletePart(tx, part.id);
      await recordUpstream(tx, batch.id, {
        provider: providerNameOf(part, inference),
        status: isGone ? 'deleted' : mayHaveData(part) ? 'unsupported' : 'not_applicable',
      });
      await this.#ended(tx, batch.id);
    });
    this.#log('a native batch ended', part, { state: upstream?.state ?? 'given up', reason: upstream?.message });
    return 'over';
  }

  async #failOpen(part: NativePart, batch: Batch, message = 'it gave no result'): Promise<void> {
    const { database } = this.#parts;
    const error = itemErrorOf(
      new GatewayError(
        'provider_unavailable',
        `the batch service of the provider did not run this request: ${message}`,
      ),
    );
    for (let count = WRITTEN_AT_ONCE; count === WRITTEN_AT_ONCE; ) {
      const open = await sql.openItemsOf(database, part, { limit: WRITTEN_AT_ONCE });
      count = open.length;
      const results = open.map(({ position }) => failedResult(position, error));
      if (count > 0) await database.transaction((tx) => writeResults(tx, batch.id, results));
    }
  }

  /** The batch was deleted with its workspace: no key is left that could be charged. */
  async #orphaned(part: NativePart): Promise<Next> {
    const { database, inference, blobs } = this.#parts;
    if (part.upstreamId !== null && part.triedAt === null) {
      try {
        const { service, account } = placeOf(part, undefined, inference);
        await service.cancel(part.upstreamId, account);
      } catch (error) {
        this.#parts.inference.log.warn('the batch of a deleted workspace cannot be cancelled', {
          native: part.id,
          error,
        });
      }
    }
    await database.transaction(async (tx) => {
      await inference.spend.holds.release(tx, part.id);
      await blobs.drop(tx, part.blobId);
      await sql.deletePart(tx, part.id);
    });
    return 'over';
  }

  // Failures.

  async #failed(step: Step, error: unknown): Promise<Next> {
    const { part, batch, signal } = step;
    const isRefusal = error instanceof BatchRefusal;
    const isMissing = error instanceof GatewayError && error.status === 503;
    if (signal.aborted || !(isRefusal || isMissing)) throw error;
    const failures = part.failures + 1;
    this.#parts.inference.log.warn('a native batch failed', { native: part.id, batch: part.batchId, failures, error });
    const isDefinite = isRefusal && error.status !== null && error.status < 500;
    const isSubmission = part.upstreamId === null;
    const isTooLate = this.#clock.now() > batch.expiresAt.getTime() + GRACE_MS;
    const isHopeless = isRefusal && !error.passing;
    // After a definite refusal nothing was created.
    await step.change({ failures, ...(isSubmission && isDefinite && { triedAt: null }) });
    if (isTooLate || (isHopeless && isDefinite) || (isSubmission && failures >= MOST_FAILURES && isDefinite)) {
      return this.#end(step, { state: 'failed', message: (error as Error).message });
    }
    const delayMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10));
    return Math.max(delayMs, (isRefusal && error.retryAfterMs) || 0);
  }

  #log(message: string, { id, batchId, upstreamId, items }: NativePart, more: object = {}): void {
    this.#parts.inference.log.info(message, { native: id, batch: batchId, upstream: upstreamId, items, ...more });
  }
}

function aboutOf({ id, format, path, items, beganAt }: NativePart, { endpoint }: Candidate): BatchAbout {
  return { marker: id, model: endpoint.upstreamId, format, path, items, beganAt: beganAt?.getTime() ?? 0 };
}

function fallsBack({ provider }: Batch): boolean {
  return provider?.allow_fallbacks !== false;
}

/** The batch is over: no further results are needed. */
function isOver(batch: Batch, clock: Pick<Clock, 'now'>): boolean {
  return batch.state === 'cancelling' || isTerminal(batch.state) || clock.now() >= batch.expiresAt.getTime();
}
