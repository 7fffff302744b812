/**
 * The answer to a request that a provider's batch interface has run: read, screened, logged and metered as if it had come from
 * the network now. The row is not entered here: its hold (`spend/holds/`) pays for it.
 */
import { GatewayError } from '../../base/errors.ts';
import type { Transport } from '../../providers/index.ts';
import type { Generation, OpenGeneration, Reservation } from '../../spend/index.ts';
import { admit } from '../admission/admit.ts';
import { Concurrency } from '../admission/concurrency.ts';
import { logContents } from '../answer/log-contents.ts';
import type { Sink } from '../answer/sink.ts';
import { Call } from '../call.ts';
import { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { AcceptedRequest } from '../request.ts';
import { type Candidate, Credentials, Health } from '../routing/index.ts';
import { serve, taskOf } from '../serve.ts';
import { uncounted } from './prepare.ts';

/** A response as the provider's batch interface reports it. */
interface BatchedReply {
  status: number;
  body: Buffer;
}

/**
 * Writes the answer to the sink. Resolves with the row, which is undefined only if the request could not be encoded any more.
 * Never rejects: every error is sent to the sink.
 * @param candidate at its batch price (`atBatch`)
 */
export async function settleBatched(
  request: AcceptedRequest,
  reply: BatchedReply,
  candidate: Candidate,
  sink: Sink,
  parts: InferenceParts,
): Promise<Generation | undefined> {
  const context = new RequestContext(request, sink, parts.clock);
  const settled = new SettledOnly();
  const alone = standalone(parts, settled);
  // A filter that was added meanwhile may block the request. It has run, and its answer is screened.
  await Promise.resolve(admit(context, alone)).catch(passing);
  logContents(context, alone);
  const task = taskOf(context, alone);
  const played = { ...candidate, endpoint: { ...candidate.endpoint, provider: playing(candidate, reply) } };
  const route = { candidates: [played], requested: candidate.endpoint.modelId, strategy: 'direct' as const };
  await new Call(context, task, route, alone, serve).run();
  return settled.row;
}

function passing(error: unknown): void {
  if (!(error instanceof GatewayError)) throw error;
}

/** The pipeline without the parts that concern the traffic of this process. */
export function standalone(parts: InferenceParts, spend: SettledOnly): InferenceParts {
  const health = new Health(parts.clock);
  const { attempted: _, cached: __, ...rest } = uncounted(parts);
  return {
    ...rest,
    spend: instead(parts.spend, { reserve: () => HELD, begin: async () => spend }),
    statistics: instead(parts.statistics, { record() {} }),
    health,
    credentials: new Credentials(health),
    concurrency: new Concurrency(),
  };
}

function instead<T extends object>(whole: T, own: Partial<T>): T {
  return Object.assign(Object.create(whole) as T, own);
}

/** The provider with a transport that plays one response. */
function playing(
  { endpoint: { provider } }: Candidate,
  { status, body }: BatchedReply,
): Candidate['endpoint']['provider'] {
  const transport: Transport = {
    send(_request, receiver) {
      let over = false;
      queueMicrotask(() => {
        if (over) return;
        receiver.head(status, { 'content-type': 'application/json' });
        receiver.data(body);
        receiver.end();
      });
      return {
        pause() {},
        resume() {},
        abort() {
          over = true;
        },
      };
    },
    async close() {},
  };
  const { signer: _, ...kind } = provider.kind;
  const { signer: __, ...rest } = provider;
  return { ...rest, kind: { ...kind, transport } };
}

/** The hold of the upstream batch has reserved it. */
const HELD: Reservation = {
  held: { creditNano: 0n, byokNano: 0n },
  extend: () => true,
  release() {},
};

/** Keeps the row, which the owner of the request's hold enters. */
export class SettledOnly implements OpenGeneration {
  row: Generation | undefined;

  attempt(): void {}

  seen(): void {}

  reported(): void {}

  settle(row: Generation, written?: () => void): void {
    // The time of reading says nothing about the provider.
    this.row = { ...row, latencyMs: null, generationMs: null };
    written?.();
  }

  async handOver(): Promise<void> {
    throw new Error('the request has a hold already');
  }
}
