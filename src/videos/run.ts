/**
 * The video jobs that run in this process. A request goes through the pipeline like any other. Once a provider has accepted
 * it, its client gets the job, and a hold in the database keeps its reservation: if the process stops, another one continues
 * to poll. The process that ends the job enters its row in the same transaction.
 */
import { type Clock, sleep, type Timer, waitAtMost } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import { readDocument } from '../base/json.ts';
import { applyEdits } from '../base/json-edits.ts';
import type { Log } from '../base/log.ts';
import type { Namespace } from '../base/namespace.ts';
import type { Blob, Blobs } from '../blobs/index.ts';
import { type CallbackJobs, type CallbackParts, callbackJobs, insertCallback } from '../callbacks/index.ts';
import type { DirectFormat } from '../formats/direct/index.ts';
import {
  type AcceptedRequest,
  type ContinuedWork,
  fingerprint,
  type InferenceParts,
  RequestContext,
  resumeJob,
  serveInContext,
  type UpstreamJob,
  WholeSink,
} from '../inference/index.ts';
import type { JobKind, Jobs } from '../jobs/index.ts';
import { decodeRow, encodeRow, type Generation, livingProcesses, type StoredRow } from '../spend/index.ts';
import type { Database } from '../storage/database.ts';
import { endCallback, setBaseUrl, VIDEO_CALLBACKS } from './callback.sql.ts';
import { videoSubjects } from './callback.ts';
import { resumedJob } from './resumed.ts';
import {
  claimVideos,
  deleteVideosBefore,
  failLostVideos,
  finishVideo,
  insertVideo,
  leaveVideo,
  renewVideos,
  takeExpired,
  type VideoEnd,
  type VideoJob,
} from './store.ts';

const DAY_MS = 86_400_000;
/** How long the content is kept, and then the job without its content. */
const KEPT_MS = 7 * DAY_MS;
const SHOWN_MS = 30 * DAY_MS;
/** How long a dead process on another machine keeps its jobs. */
const CLAIM_MS = 60_000;
const RENEW_MS = 15_000;
const TIDY_MS = 60_000;
const REMOVED_AT_ONCE = 100;
const CLAIMED_AT_ONCE = 100;
/** Limits of one process: jobs, and the bytes of their requests as a multiple of the largest request. */
const MOST_JOBS = 10_000;
const MOST_LARGE = 16;
/** Keeps a paid video while the database is away, or the storage for files away or full, for some minutes. */
const ATTEMPTS_TO_STORE = 60;
const STORE_AGAIN_MS = 5_000;
const LOST = 'the gateway was stopped while the video was made';

export interface VideoRunnerParts {
  callbacks: CallbackParts;
  jobs: Pick<Jobs, 'send'>;
  namespace: Namespace;
  database: Database;
  blobs: Blobs;
  clock: Clock;
  log: Log;
  inference: InferenceParts;
}

type VideoRequest = AcceptedRequest<DirectFormat<unknown, unknown>>;

export class VideoRunner {
  readonly kinds: readonly JobKind[];
  readonly #parts: VideoRunnerParts;
  readonly #callbacks: CallbackJobs;
  readonly #running = new Map<string, { sink: WholeSink; ended: Promise<void> }>();
  #leaving = false;
  #timer: Timer | undefined;
  /** Of requests that are served, and how many they are. */
  #held = { bytes: 0, jobs: 0 };

  constructor(parts: VideoRunnerParts) {
    this.#parts = parts;
    const { callbacks, namespace, jobs } = parts;
    this.#callbacks = callbackJobs(callbacks, videoSubjects(callbacks.database, namespace), jobs);
    this.kinds = [
      this.#callbacks.kind,
      {
        name: 'videos.tidy',
        runs: 'one',
        retries: 0,
        everyMs: TIDY_MS,
        atStart: true,
        run: ({ signal }) => this.#tidy(signal),
      },
    ];
  }

  /** From now on, jobs are left to other processes. */
  leave(): void {
    this.#leaving = true;
    for (const { sink } of this.#running.values()) sink.close();
  }

  /** After `leave`. */
  async close(mostMs: number): Promise<void> {
    await waitAtMost(this.#parts.clock, mostMs, Promise.all(Array.from(this.#running.values(), ({ ended }) => ended)));
    this.#timer?.cancel();
  }

  /**
   * Resolves with the job once a provider has accepted it. Rejects with GatewayError if none has.
   * @param previous the job that the request continues
   */
  async begin(
    accepted: VideoRequest,
    callback?: { url: string; baseUrl: string },
    previous?: VideoJob,
  ): Promise<VideoJob> {
    const sink = new WholeSink();
    const { upstream, row, id } = this.#serve(previous ? named(accepted, previous) : accepted, sink, previous);
    const made = await upstream;
    if (made === undefined) throw sink.failure ?? new GatewayError('server', 'no provider accepted the video');
    const job = this.#newJob(accepted, id, made);
    try {
      await made.generation.handOver(async (tx) => {
        await insertVideo(tx, job);
        if (callback === undefined) return;
        await insertCallback(tx, VIDEO_CALLBACKS, { subjectId: job.id, url: callback.url, createdAt: job.createdAt });
        await setBaseUrl(tx, job.id, callback.baseUrl);
      });
    } catch (error) {
      sink.close();
      throw error;
    }
    this.#hold(job, sink, row);
    return job;
  }

  /** @throws GatewayError 503 if the requests that are served take too much memory */
  #serve(accepted: VideoRequest, sink: WholeSink, previous: VideoJob | undefined) {
    const { clock, inference } = this.#parts;
    const { length } = accepted.document.bytes;
    const held = this.#held;
    if (held.jobs >= MOST_JOBS || held.bytes + length > MOST_LARGE * inference.limits.inferenceBodyBytes) {
      const details = { status: 503, retryAfterSeconds: 5, metadata: { retryable: true } };
      throw new GatewayError('provider_overloaded', 'too many videos are being made', details);
    }
    held.jobs += 1;
    held.bytes += length;
    const request = sink.observed(accepted);
    const context = new RequestContext(request, sink, clock);
    const begun = Promise.withResolvers<UpstreamJob>();
    context.accepted = (job) => begun.resolve(job);
    context.continues = previous && workOf(previous);
    const over = serveInContext(context, inference).finally(() => {
      held.jobs -= 1;
      held.bytes -= length;
    });
    return {
      id: request.id,
      /** Undefined: none was accepted. */
      upstream: Promise.race([begun.promise, over.then(() => undefined)]),
      row: over.then(() => sink.row),
    };
  }

  #newJob({ caller, facts, document }: VideoRequest, generationId: string, upstream: UpstreamJob): VideoJob {
    const now = this.#parts.clock.now();
    const { candidate, credential, estimate } = upstream;
    const { duration } = document.structure;
    return {
      id: `vid_${uuidv7(now).replaceAll('-', '')}`,
      ...{ organizationId: caller.organizationId, workspaceId: caller.workspaceId, generationId },
      ...{ model: facts.model ?? '', status: 'in_progress', error: null, cost: null, isByok: false },
      ...{ blobId: null, mediaType: null, createdAt: new Date(now), expiresAt: new Date(now + KEPT_MS) },
      ...this.#claim(now),
      upstreamId: upstream.id,
      endpointId: candidate.endpoint.id,
      credential: candidate.byok === undefined ? fingerprint(credential.value) : '',
      byokId: candidate.byok?.id ?? null,
      seconds: typeof duration === 'number' ? duration : null,
      estimate: encodeRow(estimate),
    };
  }

  #claim(now: number): { claimedBy: string; claimedUntil: Date } {
    return { claimedBy: this.#processId, claimedUntil: new Date(now + CLAIM_MS) };
  }

  get #processId(): string {
    return this.#parts.inference.spend.processId;
  }

  /** @param row of the ledger; undefined if the result could not be read in this process */
  #hold(job: VideoJob, sink: WholeSink, row: Promise<Generation | undefined>): void {
    const { clock, log } = this.#parts;
    const ended = row
      .then((entered) => this.#finish(job, sink, entered))
      .catch((cause: unknown) => log.error('a video job failed', { video: job.id, cause }))
      .finally(() => {
        this.#running.delete(job.id);
        if (this.#running.size > 0) return;
        this.#timer?.cancel();
        this.#timer = undefined;
      });
    this.#running.set(job.id, { sink, ended });
    if (this.#leaving) sink.close();
    this.#timer ??= clock.timer(RENEW_MS, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const { database, clock } = this.#parts;
    this.#timer?.refresh();
    const claim = { by: this.#processId, until: new Date(clock.now() + CLAIM_MS) };
    // While the database is unreachable, nothing can be renewed.
    await renewVideos(database, [...this.#running.keys()], claim).catch(() => {});
  }

  async #finish(job: VideoJob, sink: WholeSink, row: Generation | undefined): Promise<void> {
    const { failure, body } = sink;
    const isMade = failure === undefined && body !== undefined;
    if (row === undefined || (this.#leaving && !isMade)) {
      await leaveVideo(this.#parts.database, job.id, this.#processId);
      return;
    }
    const paid = { cost: sink.cost?.cost ?? null, isByok: row.isByok };
    if (!isMade) {
      await this.#settle(job.id, row, { ...failed(failure?.message ?? LOST), ...paid });
      return;
    }
    const blob = await this.#stored(job.id, body).catch((error: GatewayError) => error);
    if (blob instanceof Error) {
      await this.#settle(job.id, row, { ...failed(blob.message), ...paid });
      throw blob;
    }
    const end = { status: 'completed', error: null, blobId: blob.id, mediaType: sink.mediaType ?? null } as const;
    await this.#settle(job.id, row, { ...end, ...paid });
  }

  #stored(id: string, body: Buffer): Promise<Blob> {
    return this.#retried(id, () => this.#parts.blobs.write(one(body)));
  }

  /** Ends the job and enters its row, unless another process has. */
  async #settle(id: string, row: Generation, end: VideoEnd): Promise<void> {
    const { inference, blobs, clock } = this.#parts;
    await this.#retried(id, () =>
      inference.spend.holds.settle(row, async (tx) => {
        if (!(await finishVideo(tx, id, end))) return;
        if (end.blobId !== null) await blobs.keep(tx, end.blobId);
        await endCallback(tx, id, new Date(clock.now()));
        await this.#callbacks.ended(tx, id);
      }),
    );
  }

  async #retried<T>(id: string, store: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#parts;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await store();
      } catch (cause) {
        if (attempt === ATTEMPTS_TO_STORE) throw cause;
        log.warn('a video job cannot be stored; it will be retried', { video: id, cause });
        await sleep(clock, STORE_AGAIN_MS);
      }
    }
  }

  /** Continues with the jobs of dead processes. */
  async #takeOver(signal: AbortSignal): Promise<void> {
    const { database, clock, log } = this.#parts;
    for (let claimed = CLAIMED_AT_ONCE; claimed === CLAIMED_AT_ONCE && !this.#leaving; ) {
      signal.throwIfAborted();
      const now = clock.now();
      const { claimedBy: by, claimedUntil: until } = this.#claim(now);
      const lost = { now: new Date(now), living: await livingProcesses(database), limit: CLAIMED_AT_ONCE };
      const jobs = await claimVideos(database, { by, until }, lost);
      for (const job of jobs) {
        if (this.#running.has(job.id)) continue;
        try {
          await this.#resume(job);
        } catch (cause) {
          log.warn('a video job cannot be continued; it will be retried', { video: job.id, cause });
        }
      }
      claimed = jobs.length;
    }
  }

  async #resume(job: VideoJob): Promise<void> {
    const { inference, clock } = this.#parts;
    const estimate = decodeRow(JSON.parse(job.estimate!) as StoredRow);
    if (job.expiresAt.getTime() <= clock.now()) {
      await this.#settle(job.id, estimate, { ...failed(LOST), isByok: estimate.isByok });
      return;
    }
    const resumed = resumedJob(job, estimate, inference);
    const sink = new WholeSink();
    const request = sink.observed(resumed.request) as VideoRequest;
    this.#held.jobs += 1;
    const row = resumeJob({ ...resumed, request }, sink, inference).finally(() => {
      this.#held.jobs -= 1;
    });
    this.#hold(job, sink, row);
  }

  async #tidy(signal: AbortSignal): Promise<void> {
    const { database, blobs, clock } = this.#parts;
    const now = clock.now();
    await failLostVideos(database, new Date(now), LOST);
    await this.#takeOver(signal);
    for (let taken = REMOVED_AT_ONCE; taken === REMOVED_AT_ONCE; ) {
      signal.throwIfAborted();
      taken = await database.transaction(async (tx) => {
        const expired = await takeExpired(tx, new Date(now), REMOVED_AT_ONCE);
        for (const id of expired) await blobs.drop(tx, id);
        return expired.length;
      });
    }
    await deleteVideosBefore(database, new Date(now - SHOWN_MS));
    await this.#callbacks.wakeForgotten();
  }
}

/** The request with the provider's id of the job that it continues. */
function named(accepted: VideoRequest, { upstreamId }: VideoJob): VideoRequest {
  const edits = [{ key: 'previous_job_id', json: JSON.stringify(upstreamId) }];
  return { ...accepted, document: readDocument(applyEdits(accepted.document, edits)) };
}

function workOf({ endpointId, credential, byokId }: VideoJob): ContinuedWork {
  return { path: 'previous_job_id', endpointId: endpointId!, account: { credential: credential ?? '', byokId } };
}

function failed(error: string): VideoEnd {
  return { status: 'failed', error, cost: null, isByok: false, blobId: null, mediaType: null };
}

async function* one(body: Buffer): AsyncGenerator<Buffer> {
  yield body;
}
