/** Delivers the event of a batch or video that has ended to its `callback_url`: at least once, with retries for a day. */
import type { Log } from '../base/log.ts';
import { type Egress, EgressError } from '../egress/index.ts';
import type { JobKind, Jobs } from '../jobs/index.ts';
import type { Queryable } from '../storage/database.ts';
import { type Callback, type CallbackTable, findCallback, recordAttempt } from './callback.sql.ts';
import { type SecretParts, signingSecrets } from './secrets.ts';
import { signedHeaders } from './signed.ts';

/** What became of an attempt. `given_up`: it failed, and was the last one. */
export type CallbackOutcome = 'delivered' | 'stopped' | 'failed' | 'given_up';

export interface CallbackParts extends SecretParts {
  log: Log;
  egress: Pick<Egress, 'request' | 'check'>;
  /** For the metrics. */
  attempted(outcome: CallbackOutcome): void;
}

/** The event of one subject, the same in every attempt. */
export interface CallbackEvent {
  /** `evt_...` */
  id: string;
  /** The wire id of the subject. */
  subject: string;
  type: string;
  body: string;
  workspaceId: string;
  endedAt: Date;
}

/** One kind of subjects, the things that have callbacks: batches, videos. */
export interface CallbackSubjects {
  /** The name in log lines: `batch`. */
  noun: string;
  /** The name of its job. */
  job: string;
  table: CallbackTable;
  /** Undefined before the subject has ended, and after it is deleted. */
  eventOf(id: string): Promise<CallbackEvent | undefined>;
  /** Headers in addition to those of Standard Webhooks. @param secret the current one @param now wall time in ms */
  extraHeaders?(event: CallbackEvent, secret: string, now: number): Record<string, string>;
  /** Ids of ended subjects whose callback is pending and that no job has tried since `before`. Marks them as seen `at`. */
  forgotten(before: Date, at: Date): Promise<string[]>;
}

/** Receivers called at the same time by one process. */
const AT_ONCE = 8;
const TIMEOUT_MS = 15_000;
const EXPIRE_SECONDS = 60;
/** Counted from the end of the subject. A failure after it is the last one. */
const LONGEST_MS = 24 * 3_600_000;
/** After 1, 2, 4, ... seconds, then every hour: more than fit into a day. */
const RETRIES = 48;
/** Longer than the longest pause between attempts. */
const FORGOTTEN_MS = 2 * 3_600_000;
const GONE = 410;

interface CallbackJob {
  id?: string;
}

export interface CallbackJobs {
  kind: JobKind<CallbackJob>;
  /** Called in the transaction that ends the subject. */
  ended(tx: Queryable, id: string): Promise<void>;
  /** Sends lost jobs again, for example after a database was restored. */
  wakeForgotten(): Promise<void>;
}

export function callbackJobs(parts: CallbackParts, subjects: CallbackSubjects, jobs: Pick<Jobs, 'send'>): CallbackJobs {
  const kind: JobKind<CallbackJob> = {
    name: subjects.job,
    runs: 'many',
    concurrency: AT_ONCE,
    expireSeconds: EXPIRE_SECONDS,
    retries: RETRIES,
    pollSeconds: 1,
    run: ({ data: { id }, signal }) => (id === undefined ? Promise.resolve() : attempt(id, signal, subjects, parts)),
  };
  return {
    kind,
    async ended(tx, id) {
      if ((await findCallback(tx, subjects.table, id)) !== undefined) await jobs.send(kind, { id }, { tx });
    },
    async wakeForgotten() {
      const now = parts.clock.now();
      const ids = await subjects.forgotten(new Date(now - FORGOTTEN_MS), new Date(now));
      for (const id of ids) await jobs.send(kind, { id });
    },
  };
}

/** Rejects if another attempt is to follow. */
async function attempt(
  id: string,
  signal: AbortSignal,
  subjects: CallbackSubjects,
  parts: CallbackParts,
): Promise<void> {
  const { database, clock, log, attempted } = parts;
  const { noun, table } = subjects;
  const callback = await findCallback(database, table, id);
  if (callback?.status !== 'pending') return;
  const event = await subjects.eventOf(id);
  if (event === undefined) return;
  const problem = await send({ url: callback.url, event, extraHeaders: subjects.extraHeaders }, signal, parts);
  const about = { [noun]: event.subject, event: event.type, attempts: callback.attempts + 1 };
  const record = (status: Callback['status'], error: string | null) =>
    recordAttempt(database, table, id, { status, error, at: new Date(clock.now()) });
  if (problem === undefined) {
    await record('delivered', null);
    log.info(`a ${noun} callback was delivered`, about);
    return attempted('delivered');
  }
  if (problem.stops) {
    await record('stopped', problem.message);
    log.warn(`the receiver of a ${noun} callback answered 410`, about);
    return attempted('stopped');
  }
  if (clock.now() - event.endedAt.getTime() > LONGEST_MS) {
    await record('failed', problem.message);
    log.error(`a ${noun} callback could not be delivered`, { ...about, problem: problem.message });
    return attempted('given_up');
  }
  await record('pending', problem.message);
  attempted('failed');
  throw new Error(`the callback of ${event.subject} failed: ${problem.message}`);
}

interface Problem {
  message: string;
  stops: boolean;
}

interface Delivery extends Pick<CallbackSubjects, 'extraHeaders'> {
  url: string;
  event: CallbackEvent;
}

/** Undefined: delivered. */
async function send(
  { url, event, extraHeaders }: Delivery,
  signal: AbortSignal,
  parts: CallbackParts,
): Promise<Problem | undefined> {
  const secrets = await signingSecrets(parts, event.workspaceId);
  const [current] = secrets;
  if (current === undefined) throw new Error(`workspace ${event.workspaceId} has no callback secret`);
  const now = parts.clock.now();
  const headers = { ...signedHeaders(event, secrets, now), ...extraHeaders?.(event, current, now) };
  try {
    const { status } = await parts.egress.request({
      ...{ url, method: 'POST', headers, body: event.body, signal, timeoutMs: TIMEOUT_MS },
      tlsOnly: true,
      headOnly: true,
      maxBytes: 0,
    });
    if (status >= 200 && status < 300) return undefined;
    return { message: `the receiver answered with status ${status}`, stops: status === GONE };
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    // The process closes, or the job took too long: not a failure of the receiver.
    if (error.fault === 'cancelled') throw error;
    return { message: `callback_url ${error.message}`, stops: false };
  }
}
