/** Sends records to one destination. */
import type { Problem } from '../../base/delivery-queue.ts';
import { type Egress, type Outgoing, post } from '../../egress/index.ts';
import type { DestinationKind, FullConfig, Scene } from '../kinds/kind.ts';
import type { GenerationRecord } from '../record.ts';

export interface SendParts {
  egress: Pick<Egress, 'request' | 'check'>;
  /** The version of the gateway. */
  version: string;
}

export interface Target {
  kind: DestinationKind;
  config: FullConfig;
}

const TIMEOUT_MS = 15_000;
/** Requests of one batch, for types that send one for each record. */
const AT_ONCE = 8;

/**
 * Refusals of one batch after which its parts are not divided further: enough to find two records among the 500 of the
 * largest batch.
 */
const MOST_REFUSALS = 20;

interface Sent {
  /** Why all records have to be sent again. */
  problem?: Problem;
  /** Number of records that the destination refused. The others have arrived. */
  refused: number;
  /** The last refusal. */
  reason: string;
}

/** Sends a refused batch again in halves, so that one bad record does not hold back the others. */
export async function sendRecords(
  parts: SendParts,
  target: Target,
  records: readonly GenerationRecord[],
  now: number,
  signal?: AbortSignal,
): Promise<Sent> {
  const sent: Sent = { refused: 0, reason: '' };
  let refusals = 0;
  const send = async (some: readonly GenerationRecord[]): Promise<Problem | undefined> => {
    const problem = await sendTogether(parts, target, some, now, signal);
    if (problem?.outcome !== 'refused') return problem;
    refusals += 1;
    if (some.length > 1 && refusals <= MOST_REFUSALS) {
      const half = some.length >> 1;
      return (await send(some.slice(0, half))) ?? send(some.slice(half));
    }
    sent.refused += some.length;
    sent.reason = problem.message;
    return undefined;
  };
  const problem = await send(records);
  return problem === undefined ? sent : { ...sent, problem };
}

/** Undefined: everything was accepted. */
async function sendTogether(
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
    // It would fail each time, and hold up later records.
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

function sendOne({ egress }: SendParts, request: Outgoing, signal?: AbortSignal): Promise<Problem | undefined> {
  return post(egress, request, { receiver: 'the destination', timeoutMs: TIMEOUT_MS, tlsOnly: true, signal });
}
