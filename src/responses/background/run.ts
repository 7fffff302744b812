/**
 * The background responses of one process. A job says that one is queued; whichever process takes it claims the row, sends the
 * request through the pipeline and writes how it ended. Each is run at most once: a response whose process dies has failed,
 * since its provider may have been paid.
 */

import type { Caller } from '../../access/index.ts';
import { type Clock, sleep, waitAtMost } from '../../base/clock.ts';
import type { RetentionSettings } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import { readDocument, stringifyJson } from '../../base/json.ts';
import type { Log } from '../../base/log.ts';
import { unixSeconds } from '../../base/timestamp.ts';
import type { ServedFormat } from '../../formats/conversation/format.ts';
import { responseOf } from '../../formats/index.ts';
import { type AcceptedRequest, accept, asGatewayError, type InferenceParts, serve } from '../../inference/index.ts';
import type { JobKind, Jobs } from '../../jobs/index.ts';
import type { Sealing } from '../../sealing/index.ts';
import type { Changes, Database } from '../../storage/database.ts';
import type { Claims } from '../claims.ts';
import { addsTo, append, type OpenConversation, openConversation, turnItems } from '../conversations/items.ts';
import { type Recorded, Recorder } from '../recorder.ts';
import { nameableItems } from '../references.ts';
import { generationIdOf, memberOf, type StoredResponse } from '../response.ts';
import { type DataKey, dataKeysOf } from '../sealed.ts';
import { stampOf } from '../stamp.ts';
import { claimQueued, finishResponse } from '../store.ts';
import { tidyResponsesJob } from '../tidy-job.ts';
import { echoing } from '../wanted.ts';
import { EventLog } from './events.ts';
import type { QueuedRequest } from './queued-request.ts';
import { BackgroundSink } from './sink.ts';

/** Announced with the id of a response that was cancelled or deleted. */
export const CANCELLED_TOPIC = 'responses.cancelled';

/** That a process runs at the same time; others wait in the queue, for any process. */
const MOST_AT_ONCE = 64;
const ATTEMPTS_TO_STORE = 5;
const STORE_AGAIN_MS = 1_000;

export interface RunnerParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  log: Log;
  sealing: Sealing;
  inference: InferenceParts;
  claims: Claims;
  retention(): RetentionSettings;
  /** The current caller of a key. Rejects with GatewayError 401 when the key may not be used. */
  callerOfKey(hash: string): Caller | Promise<Caller>;
}

type ClaimedRow = NonNullable<Awaited<ReturnType<typeof claimQueued>>>;

export class BackgroundRunner {
  readonly kind: JobKind<{ id: string }>;
  /** To be registered. */
  readonly kinds: readonly JobKind[];
  readonly #parts: RunnerParts;
  readonly #running = new Map<string, { sink: BackgroundSink | undefined; over: Promise<void> }>();
  /** Jobs that wait for one of the running responses to end. */
  readonly #waiting = new Set<() => void>();

  constructor(parts: RunnerParts, jobs: Pick<Jobs, 'send'>) {
    this.#parts = parts;
    parts.changes.subscribe(CANCELLED_TOPIC, (id) => {
      // The renewal of the claims finds cancellations whose announcement was missed.
      if (id !== null) this.#running.get(id)?.sink?.close();
    });
    this.kind = {
      name: 'responses.run',
      runs: 'many',
      pollSeconds: 1,
      run: async ({ data, signal }) => {
        await this.#room(signal);
        await this.#take(data.id);
      },
    };
    const wake = (id: string) => jobs.send(this.kind, { id });
    this.kinds = [this.kind, tidyResponsesJob({ ...parts, wake })];
  }

  /** Running responses continue until the server interrupts them. */
  async close(mostMs: number): Promise<void> {
    const all = [...this.#running.values()].map(({ over }) => over);
    await waitAtMost(this.#parts.clock, mostMs, Promise.all(all));
  }

  async #room(signal: AbortSignal): Promise<void> {
    while (this.#running.size >= MOST_AT_ONCE) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const abort = () => reject(signal.reason as Error);
      this.#waiting.add(resolve);
      signal.addEventListener('abort', abort, { once: true });
      await promise.finally(() => {
        this.#waiting.delete(resolve);
        signal.removeEventListener('abort', abort);
      });
    }
    signal.throwIfAborted();
  }

  async #take(id: string): Promise<void> {
    const { database, claims, clock } = this.#parts;
    const choice = { claim: claims.id, until: claims.until(), now: new Date(clock.now()) };
    const row = await claimQueued(database, id, choice);
    if (row === undefined) return;
    const slot: { sink: BackgroundSink | undefined; over: Promise<void> } = {
      sink: undefined,
      over: Promise.resolve(),
    };
    this.#running.set(id, slot);
    claims.hold(id, () => slot.sink?.close());
    slot.over = this.#run(row, (sink) => {
      slot.sink = sink;
    })
      .catch((cause: unknown) => this.#parts.log.error('a background response failed', { response: id, cause }))
      .finally(() => {
        claims.release(id);
        this.#running.delete(id);
        for (const wake of this.#waiting) wake();
      });
  }

  async #run(row: ClaimedRow, begins: (sink: BackgroundSink) => void): Promise<void> {
    const { database, changes, clock, sealing, inference } = this.#parts;
    const [key] = await dataKeysOf(sealing, [row]);
    const first = key!.open('answer', row.answer);
    const log = row.streamed ? new EventLog(row.id, key!, { database, changes, clock }) : undefined;
    let recorded: Recorded;
    try {
      const request = await this.#accepted(row, key!);
      const recorder = new Recorder(stampOf(request), first, {
        created: unixSeconds(row.createdAt),
        told: (data, event) => log?.add(data, event),
      });
      const sink = new BackgroundSink(recorder);
      begins(sink);
      await serve(sink.observed(request), sink, inference);
      if (sink.failure !== undefined) throw sink.failure;
      recorded = recorder.end(sink.closed ? 'cancelled' : 'failed');
    } catch (error) {
      recorded = failed(first, asGatewayError(error), row);
      if (!(error instanceof GatewayError)) this.#parts.log.error('a background response failed', { cause: error });
    }
    await log?.stop();
    await this.#store(row, recorded, { key: key!, log });
  }

  async #accepted(row: ClaimedRow, key: DataKey): Promise<AcceptedRequest<ServedFormat>> {
    const { clock, callerOfKey } = this.#parts;
    const { body, about, members } = JSON.parse(key.open('request', row.request)) as QueuedRequest;
    const caller = await callerOfKey(row.keyHash);
    const document = readDocument(Buffer.from(body));
    const accepted = accept(echoing(members), document, caller, clock.now(), about);
    return { ...accepted, id: generationIdOf(row.id), countedAhead: true };
  }

  /** Undefined: the response has none, or it was deleted. */
  async #conversation(id: string | null, workspaceId: string): Promise<OpenConversation | undefined> {
    if (id === null) return undefined;
    return openConversation(id, workspaceId, this.#parts).catch((error: unknown) => {
      if (error instanceof GatewayError && error.status === 404) return undefined;
      throw error;
    });
  }

  async #store(
    { id, workspaceId, conversationId, input, contextItems }: ClaimedRow,
    { status, answer }: Recorded,
    { key, log }: { key: DataKey; log: EventLog | undefined },
  ): Promise<void> {
    const { database, claims, clock } = this.#parts;
    const sealed = key.seal('answer', answer);
    const named = nameableItems(answer);
    const items = turnItems(key.open('input', input), memberOf(answer, 'output')).slice(contextItems);
    for (let attempt = 1; ; attempt += 1) {
      try {
        const conversation = await this.#conversation(conversationId, workspaceId);
        await database.transaction(async (tx) => {
          const ended = await finishResponse(tx, { id, claim: claims.id, status, answer: sealed, items: named });
          if (conversation && addsTo(ended)) await append(tx, conversation, items, clock.now());
          await log?.end(tx);
        });
        return;
      } catch (cause) {
        if (attempt === ATTEMPTS_TO_STORE) throw cause;
        await sleep(clock, STORE_AGAIN_MS);
      }
    }
  }
}

function failed(first: string, error: GatewayError, { id, createdAt }: StoredResponse): Recorded {
  const stamp = { id: generationIdOf(id), model: '', provider: '', created: 0, usage: 'none' } as const;
  const created = unixSeconds(createdAt);
  const { error: told, error_type: type } = responseOf(stamp, { status: 'failed', error, output: [], created });
  const answer = { ...(JSON.parse(first) as object), status: 'failed', error: told, error_type: type };
  return { status: 'failed', answer: stringifyJson(answer) };
}
