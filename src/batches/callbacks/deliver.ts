/** Delivers the event of a final batch to its `callback_url`: at least once, for a day. */
import type { Log } from '../../base/log.ts';
import { type Egress, EgressError } from '../../egress/index.ts';
import type { JobKind, Jobs } from '../../jobs/index.ts';
import type { Queryable } from '../../storage/database.ts';
import { type Batch, isTerminal, wireId } from '../batch.ts';
import { findBatch } from '../store.ts';
import { eventRequest, eventType } from './event.ts';
import { type SecretParts, signingSecrets } from './secrets.ts';
import * as store from './store.ts';

/** What became of an attempt. `given_up`: it failed, and was the last one. */
export type CallbackOutcome = 'delivered' | 'stopped' | 'failed' | 'given_up';

export interface CallbackParts extends SecretParts {
  log: Log;
  egress: Pick<Egress, 'request' | 'check'>;
  /** For the metrics. */
  attempted(outcome: CallbackOutcome): void;
}

/** Receivers called at the same time by one process. */
const AT_ONCE = 8;
const TIMEOUT_MS = 15_000;
const EXPIRE_SECONDS = 60;
/** Counted from the end of the batch. A failure after it is the last one. */
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
  /** In the transaction that makes a batch final. */
  ended(tx: Queryable, batchId: string): Promise<void>;
  /** Sends the jobs again that were lost, for example with a restored database. */
  wakeForgotten(): Promise<void>;
}

export function callbackJobs(parts: CallbackParts, jobs: Pick<Jobs, 'send'>): CallbackJobs {
  const kind: JobKind<CallbackJob> = {
    name: 'batches.callback',
    runs: 'many',
    concurrency: AT_ONCE,
    expireSeconds: EXPIRE_SECONDS,
    retries: RETRIES,
    pollSeconds: 1,
    run: ({ data: { id }, signal }) => (id === undefined ? Promise.resolve() : attempt(id, signal, parts)),
  };
  return {
    kind,
    async ended(tx, id) {
      if ((await store.findCallback(tx, id)) !== undefined) await jobs.send(kind, { id }, { tx });
    },
    async wakeForgotten() {
      const now = parts.clock.now();
      const ids = await store.forgottenCallbacks(parts.database, new Date(now - FORGOTTEN_MS), new Date(now));
      for (const id of ids) await jobs.send(kind, { id });
    },
  };
}

/** Rejects if another attempt shall follow. */
async function attempt(id: string, signal: AbortSignal, parts: CallbackParts): Promise<void> {
  const { database, clock, log, attempted } = parts;
  const callback = await store.findCallback(database, id);
  const batch = await findBatch(database, id);
  if (callback?.status !== 'pending' || batch === undefined || !isTerminal(batch.state)) return;
  const problem = await send(callback.url, batch, signal, parts);
  const about = { batch: wireId(id), event: eventType(batch), attempts: callback.attempts + 1 };
  const record = (status: store.Callback['status'], error: string | null) =>
    store.recordAttempt(database, id, { status, error, at: new Date(clock.now()) });
  if (problem === undefined) {
    await record('delivered', null);
    log.info('a batch callback was delivered', about);
    return attempted('delivered');
  }
  if (problem.stops) {
    await record('stopped', problem.message);
    log.warn('the receiver of a batch callback answered 410', about);
    return attempted('stopped');
  }
  if (clock.now() - batch.finalizedAt!.getTime() > LONGEST_MS) {
    await record('failed', problem.message);
    log.error('a batch callback could not be delivered', { ...about, problem: problem.message });
    return attempted('given_up');
  }
  await record('pending', problem.message);
  attempted('failed');
  throw new Error(`the callback of ${about.batch} failed: ${problem.message}`);
}

interface Problem {
  message: string;
  stops: boolean;
}

/** Undefined: delivered. */
async function send(
  url: string,
  batch: Batch,
  signal: AbortSignal,
  parts: CallbackParts,
): Promise<Problem | undefined> {
  const secrets = await signingSecrets(parts, batch.workspaceId);
  if (secrets.length === 0) throw new Error(`workspace ${batch.workspaceId} has no callback secret`);
  const { headers, body } = eventRequest(batch, secrets, parts.clock.now());
  try {
    const { status } = await parts.egress.request({
      ...{ url, method: 'POST', headers, body, signal, timeoutMs: TIMEOUT_MS },
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
