/**
 * Requests that a tool makes while it runs: through `accept` and all stages of `serve.ts` like a client's, with a
 * reservation and a row of their own, whose `request_id` is that of the outer request.
 */
import { GatewayError } from '../base/errors.ts';
import { readDocument, stringifyJson } from '../base/json.ts';
import type { Nano } from '../base/money.ts';
import { type Fields, fieldsOf } from '../formats/conversation/fields.ts';
import { chat } from '../formats/index.ts';
import { accept } from './accept.ts';
import type { Sink } from './answer/sink.ts';
import { WholeSink } from './answer/whole-sink.ts';
import type { InferenceParts } from './parts.ts';
import type { AcceptedRequest } from './request.ts';

/** `serve` of `serve.ts`. */
export type Serve = (request: AcceptedRequest, sink: Sink, parts: InferenceParts) => Promise<void>;

interface Asking {
  /** Whose tool asks. */
  request: AcceptedRequest;
  signal: AbortSignal;
  serve: Serve;
  parts: InferenceParts;
  /** Called once with what it has cost, also if it fails. */
  charged(nano: Nano): void;
}

/**
 * Resolves with the reply.
 * @param body of a chat request that is not streamed and has no tools
 * @throws GatewayError as for a client's request, or the reason of the signal
 */
export async function askNested(body: Fields, asking: Asking): Promise<Fields> {
  const { request: outer, signal, serve, parts, charged } = asking;
  signal.throwIfAborted();
  const request = { ...acceptNested(body, outer, parts.clock.now()), nested: true as const };
  const sink = new WholeSink((row) => charged(row.costNano));
  const leave = () => sink.close();
  signal.addEventListener('abort', leave, { once: true });
  try {
    await serve(sink.observed(request), sink, parts);
  } finally {
    signal.removeEventListener('abort', leave);
  }
  signal.throwIfAborted();
  if (sink.failure !== undefined) throw sink.failure;
  if (sink.status !== 200) throw new GatewayError('server', 'the request was aborted');
  return JSON.parse(sink.body!.toString()) as Fields;
}

function acceptNested(body: Fields, { about, facts, caller, document }: AcceptedRequest, now: number): AcceptedRequest {
  const { user, sessionId = about.sessionId } = facts;
  const provider = providerRulesOf(document.member('provider'));
  const own = { ...body, stream: false, ...(user !== undefined && { user }), ...(provider && { provider }) };
  // The cache and betas are for the client's request only.
  const { 'anthropic-beta': _, ...headers } = about.headers;
  const nested = { ...about, sessionId, metadata: false, cache: undefined, headers };
  return accept(chat, readDocument(Buffer.from(stringifyJson(own))), caller, now, nested);
}

/** Rules of the client about who may receive its data. */
const DATA_RULES = ['only', 'ignore', 'data_collection', 'zdr', 'enforce_distillable_text'];

function providerRulesOf(preferences: unknown): Fields | undefined {
  const rules = Object.entries(fieldsOf(preferences)).filter(([name]) => DATA_RULES.includes(name));
  return rules.length === 0 ? undefined : Object.fromEntries(rules);
}
