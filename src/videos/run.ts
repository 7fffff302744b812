/**
 * The video jobs that run in this process. A request goes through the pipeline like any other and keeps its reservation
 * until it ends; its client gets the job once a provider has accepted it. A job whose process dies has failed, since its
 * provider may have been paid; the journal settles its request.
 */
import type { Caller } from '../access/index.ts';
import { type Clock, sleep, type Timer, waitAtMost } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { Blobs } from '../blobs/index.ts';
import type { DirectFormat } from '../formats/direct/index.ts';
import {
  type AcceptedRequest,
  type InferenceParts,
  RequestContext,
  serveInContext,
  WholeSink,
} from '../inference/index.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Database } from '../storage/database.ts';
import {
  deleteVideosBefore,
  failLostVideos,
  finishVideo,
  insertVideo,
  renewVideos,
  takeExpired,
  type VideoEnd,
  type VideoJob,
} from './store.ts';

const DAY_MS = 86_400_000;
/** How long the content is kept, and then the job without its content. */
const KEPT_MS = 7 * DAY_MS;
const SHOWN_MS = 30 * DAY_MS;
/** How long a job of a dead process still appears as running. */
const CLAIM_MS = 60_000;
const RENEW_MS = 15_000;
const TIDY_MS = 60_000;
const REMOVED_AT_ONCE = 100;
/** Jobs of this process; all their requests together are at most so many times as large as the largest. */
const MOST_JOBS = 10_000;
const MOST_LARGE = 16;
/** A video that was paid is not lost with the database for some minutes. */
const ATTEMPTS_TO_STORE = 60;
const STORE_AGAIN_MS = 5_000;
const LOST = 'the gateway was stopped while the video was made';

export interface VideoRunnerParts {
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
  readonly #running = new Map<string, Promise<void>>();
  #timer: Timer | undefined;
  /** Of requests that are served, and how many they are. */
  #held = { bytes: 0, jobs: 0 };

  constructor(parts: VideoRunnerParts) {
    this.#parts = parts;
    this.kinds = [
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

  /** Jobs continue until the server interrupts them. */
  async close(mostMs: number): Promise<void> {
    await waitAtMost(this.#parts.clock, mostMs, Promise.all(this.#running.values()));
    this.#timer?.cancel();
  }

  /** Resolves with the job once a provider has accepted it. Rejects with GatewayError if none has. */
  async begin(accepted: VideoRequest): Promise<VideoJob> {
    const sink = new WholeSink();
    const serving = this.#serve(accepted, sink);
    const request = await serving.begun;
    if (sink.failure !== undefined) throw sink.failure;
    const job = newJob(request, this.#parts.clock.now());
    try {
      await insertVideo(this.#parts.database, job);
    } catch (error) {
      sink.close();
      throw error;
    }
    this.#hold(job.id, this.#finish(job, sink, serving.over));
    return job;
  }

  /** @throws GatewayError 503 if the requests that are served take too much memory */
  #serve(accepted: VideoRequest, sink: WholeSink): { begun: Promise<AcceptedRequest>; over: Promise<void> } {
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
    const begun = Promise.withResolvers<void>();
    context.accepted = () => begun.resolve();
    const over = serveInContext(context, inference).finally(() => {
      held.jobs -= 1;
      held.bytes -= length;
    });
    return { begun: Promise.race([begun.promise, over]).then(() => request), over };
  }

  #hold(id: string, over: Promise<void>): void {
    const { clock, log } = this.#parts;
    const ended = over
      .catch((cause: unknown) => log.error('a video job failed', { video: id, cause }))
      .finally(() => {
        this.#running.delete(id);
        if (this.#running.size > 0) return;
        this.#timer?.cancel();
        this.#timer = undefined;
      });
    this.#running.set(id, ended);
    this.#timer ??= clock.timer(RENEW_MS, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const { database, clock } = this.#parts;
    this.#timer?.refresh();
    // While the database is unreachable, nothing can be renewed.
    await renewVideos(database, [...this.#running.keys()], new Date(clock.now() + CLAIM_MS)).catch(() => {});
  }

  async #finish(job: VideoJob, sink: WholeSink, serving: Promise<void>): Promise<void> {
    await serving;
    const paid = { cost: sink.cost?.cost ?? null, isByok: sink.row?.isByok === true };
    const { failure, body } = sink;
    if (failure !== undefined || body === undefined) {
      await this.#store(job.id, { ...failed(failure?.message ?? LOST), ...paid });
      return;
    }
    const blob = await this.#parts.blobs.write(one(body)).catch((error: GatewayError) => error);
    if (blob instanceof Error) {
      await this.#store(job.id, { ...failed(blob.message), ...paid });
      throw blob;
    }
    const end = { status: 'completed', error: null, blobId: blob.id, mediaType: sink.mediaType ?? null } as const;
    await this.#store(job.id, { ...end, ...paid });
  }

  async #store(id: string, end: VideoEnd): Promise<void> {
    const { database, blobs, clock } = this.#parts;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await database.transaction(async (tx) => {
          if ((await finishVideo(tx, id, end)) && end.blobId !== null) await blobs.keep(tx, end.blobId);
        });
        return;
      } catch (cause) {
        if (attempt === ATTEMPTS_TO_STORE) throw cause;
        await sleep(clock, STORE_AGAIN_MS);
      }
    }
  }

  async #tidy(signal: AbortSignal): Promise<void> {
    const { database, blobs, clock } = this.#parts;
    const now = clock.now();
    await failLostVideos(database, new Date(now), LOST);
    for (let taken = REMOVED_AT_ONCE; taken === REMOVED_AT_ONCE; ) {
      signal.throwIfAborted();
      taken = await database.transaction(async (tx) => {
        const expired = await takeExpired(tx, new Date(now), REMOVED_AT_ONCE);
        for (const id of expired) await blobs.drop(tx, id);
        return expired.length;
      });
    }
    await deleteVideosBefore(database, new Date(now - SHOWN_MS));
  }
}

function newJob(
  { id, caller, facts }: { id: string; caller: Caller; facts: VideoRequest['facts'] },
  now: number,
): VideoJob {
  return {
    id: `vid_${uuidv7(now).replaceAll('-', '')}`,
    ...{ organizationId: caller.organizationId, workspaceId: caller.workspaceId, generationId: id },
    ...{ model: facts.model ?? '', status: 'in_progress', error: null, cost: null, isByok: false },
    ...{ blobId: null, mediaType: null, createdAt: new Date(now) },
    ...{ expiresAt: new Date(now + KEPT_MS), claimedUntil: new Date(now + CLAIM_MS) },
  };
}

function failed(error: string): VideoEnd {
  return { status: 'failed', error, cost: null, isByok: false, blobId: null, mediaType: null };
}

async function* one(body: Buffer): AsyncGenerator<Buffer> {
  yield body;
}
