/**
 * Message threads: the upstream stores a conversation under the id of its answer, which clients know by the gateway's
 * id. A request that continues a thread goes to the endpoint and credential that store it. Ids are kept per process and
 * bounded in number; other processes find them in the answer's row, and choose the same credential by the session's
 * name.
 *
 * A thread that cannot be continued is refused in a way that makes the SDKs send the whole conversation:
 * `thread_not_found` starts a new thread, `thread_unsupported_request` continues without one.
 */
import { GatewayError } from '../../base/errors.ts';
import type { Endpoint } from '../../catalog/index.ts';
import { SPOKEN_FORMATS, spokenFormat } from '../../formats/index.ts';
import { formatsFor } from '../../providers/index.ts';
import type { Generation, Spend } from '../../spend/index.ts';
import type { RequestContext } from '../context.ts';
import type { AcceptedRequest } from '../request.ts';
import { byokCredentialId, type Candidate, type Route, sessionKey } from './index.ts';

const MAX_THREADS = 20_000;

interface Held {
  /** The key that owns the thread; other keys cannot continue it. */
  keyId: string;
  endpointId: string;
  /** The upstream's id of the answer. */
  upstreamId: string;
  /** Absent for any of the gateway's own credentials, chosen as for the first request. */
  credentialId?: string;
  isByok: boolean;
}

export class Threads {
  readonly #spend: Pick<Spend, 'findGeneration'>;
  /** By the gateway's id of the answer, the least recently used first. */
  readonly #held = new Map<string, Held>();

  constructor(spend: Pick<Spend, 'findGeneration'>) {
    this.#spend = spend;
  }

  /** Remembers an answer of a thread. */
  keep({ id, keyId, endpointId, upstreamId, isByok }: Generation, credentialId: string): void {
    if (endpointId === null || upstreamId === null) return;
    if (this.#held.size >= MAX_THREADS) this.#held.delete(this.#held.keys().next().value!);
    this.#held.set(id, { keyId, endpointId, upstreamId, credentialId, isByok });
  }

  /**
   * The endpoints that may serve a request with a thread; if it continues one, the endpoint that stores it. Adds the
   * upstream's ids of earlier answers that the request names.
   */
  async route(route: Route, context: RequestContext): Promise<Route> {
    const { request } = context;
    const { facts } = request;
    if (facts.comparedId !== undefined) context.comparedId = (await this.#find(facts.comparedId, request))?.upstreamId;
    return facts.thread === undefined ? route : this.#continued(route, context);
  }

  async #continued(route: Route, context: RequestContext): Promise<Route> {
    const { request } = context;
    const { facts, caller } = request;
    const named = sessionKey({
      keyId: caller.keyId,
      model: route.requested,
      sessionId: facts.sessionId ?? request.about.sessionId ?? 'threads',
      cacheKey: undefined,
      body: request.document.bytes,
    });
    const candidates = route.candidates.filter(({ endpoint }) => holdsThreads(endpoint));
    // A fallback model would be worse than a request without a thread.
    if (!candidates.some(({ rank }) => rank === 0)) throw unsupported(route.requested);
    const { previousId } = facts.thread!;
    if (previousId === undefined) return { ...route, candidates, session: named };
    const held = await this.#find(previousId, request);
    const holder = held && candidates.find((candidate) => isHolder(candidate, held));
    if (held === undefined || holder === undefined) throw notFound(previousId);
    context.previousId = held.upstreamId;
    return { ...route, candidates: [{ ...holder, credentialId: held.credentialId }], session: named };
  }

  async #find(id: string, { caller }: AcceptedRequest): Promise<Held | undefined> {
    const known = this.#held.get(id);
    if (known !== undefined) {
      if (known.keyId !== caller.keyId) return undefined;
      this.#held.delete(id);
      this.#held.set(id, known);
      return known;
    }
    const viewer = { organizationId: caller.organizationId, keyId: caller.keyId };
    const row = await this.#spend.findGeneration(id, viewer);
    if (!row?.endpointId || !row.upstreamId) return undefined;
    const { keyId, endpointId, upstreamId, isByok } = row;
    return { keyId, endpointId, upstreamId, isByok };
  }
}

function holdsThreads({ provider: { kind }, upstreamId, speaks }: Endpoint): boolean {
  return SPOKEN_FORMATS.some(
    (id) =>
      spokenFormat(id).keepsThreads?.(kind.dialect) === true && formatsFor(kind, upstreamId, id, speaks)[0] === id,
  );
}

function isHolder({ endpoint, byok }: Candidate, { endpointId, credentialId, isByok }: Held): boolean {
  if (endpoint.id !== endpointId || (byok !== undefined) !== isByok) return false;
  return byok === undefined || credentialId === undefined || byokCredentialId(byok) === credentialId;
}

function unsupported(model: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `thread: no endpoint of ${JSON.stringify(model.slice(0, 200))} supports threads; send the whole conversation`,
    { path: 'thread', formDetails: { error_code: 'thread_unsupported_request', unsupported: ['thread'] } },
  );
}

function notFound(id: string): GatewayError {
  return new GatewayError(
    'not_found',
    `thread.previous_message_id: no endpoint stores a thread with the answer ${JSON.stringify(id.slice(0, 200))}`,
    { path: 'thread.previous_message_id', formDetails: { error_code: 'thread_not_found' } },
  );
}
