/** Sends records to one destination, and judges the answers. */
import { type Egress, EgressError } from '../../egress/index.ts';
import type { DestinationKind, FullConfig, Outgoing, Scene } from '../kinds/kind.ts';
import type { GenerationRecord } from '../record.ts';

export interface SendParts {
  egress: Pick<Egress, 'request' | 'check'>;
  /** The version of the gateway. */
  version: string;
}

/** Undefined: everything was accepted. */
export interface Problem {
  message: string;
  /** `refused`: the destination will never accept these records. `cancelled`: the process closes. */
  outcome: 'refused' | 'failed' | 'cancelled';
  retryAfterMs?: number;
}

export interface Target {
  kind: DestinationKind;
  config: FullConfig;
}

const TIMEOUT_MS = 15_000;
/** Requests of one batch, for types that send one for each record. */
const AT_ONCE = 8;
/** Statuses that say that the request itself is wrong. All others may pass: 401 and 403 when a key is replaced. */
const REFUSED: ReadonlySet<number> = new Set([400, 413, 415, 422]);
const MOST_RETRY_AFTER_S = 3_600;

export async function sendRecords(
  parts: SendParts,
  { kind, config }: Target,
  records: readonly GenerationRecord[],
  now: number,
  signal?: AbortSignal,
): Promise<Problem | undefined> {
  const scene: Scene = { now, version: parts.version };
  let requests: readonly Outgoing[];
  try {
    requests = await kind.requests(config, records, scene);
  } catch (error) {
    // It would fail each time, and hold up the records behind these.
    return { message: `the records cannot be expressed: ${String(error)}`, outcome: 'refused' };
  }
  for (let next = 0; next < requests.length; next += AT_ONCE) {
    const some = requests.slice(next, next + AT_ONCE);
    const problems = await Promise.all(some.map((request) => sendOne(parts, request, signal)));
    const problem = problems.find((each) => each !== undefined);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Tests a config before it is saved. Undefined: the destination accepts it. */
export async function probe(parts: SendParts, { kind, config }: Target, now: number): Promise<string | undefined> {
  const request = await kind.probe(config, { now, version: parts.version });
  return (await sendOne(parts, request))?.message;
}

async function sendOne(
  { egress }: SendParts,
  { url, method, headers, body }: Outgoing,
  signal?: AbortSignal,
): Promise<Problem | undefined> {
  try {
    const reply = await egress.request({
      ...{ url, method, headers, body, timeoutMs: TIMEOUT_MS },
      ...(signal && { signal }),
      tlsOnly: true,
      headOnly: true,
      maxBytes: 0,
    });
    if (reply.status >= 200 && reply.status < 300) return undefined;
    const outcome = REFUSED.has(reply.status) ? 'refused' : 'failed';
    const seconds = Number(reply.headers['retry-after']);
    return {
      message: `the destination answered with status ${reply.status}`,
      outcome,
      ...(seconds > 0 && { retryAfterMs: Math.min(seconds, MOST_RETRY_AFTER_S) * 1_000 }),
    };
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    return {
      message: `the destination ${error.message}`,
      outcome: error.fault === 'cancelled' ? 'cancelled' : 'failed',
    };
  }
}
