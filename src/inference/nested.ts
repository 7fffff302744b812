/**
 * Requests that a tool makes while it runs: through `accept` and all stages of `serve.ts` like a client's, with a
 * reservation and a row of their own, whose `request_id` is that of the outer request.
 */
import { GatewayError } from '../base/errors.ts';
import { readDocument, stringifyJson } from '../base/json.ts';
import { type Fields, fieldsOf } from '../formats/conversation/fields.ts';
import { embedding } from '../formats/embedding/index.ts';
import { image } from '../formats/image/index.ts';
import { chat, responses } from '../formats/index.ts';
import type { Generation } from '../spend/index.ts';
import { accept } from './accept.ts';
import type { Metered, NestedCost } from './accounting/meter.ts';
import type { Sink } from './answer/sink.ts';
import { WholeSink } from './answer/whole-sink.ts';
import type { InferenceParts } from './parts.ts';
import type { AcceptedRequest, AnyFormat } from './request.ts';

/** Tools of a tool's request may send requests; tools of those may not. */
const MAX_DEPTH = 2;

/** `serve` of `serve.ts`. */
export type Serve = (request: AcceptedRequest, sink: Sink, parts: InferenceParts) => Promise<void>;

const FORMATS = { chat, responses, image, embedding } as const;

interface Asking {
  operation: keyof typeof FORMATS;
  /** The request whose tool sends this one. */
  request: AcceptedRequest;
  signal: AbortSignal;
  serve: Serve;
  parts: InferenceParts;
  /** Called once with what it has cost, also if it fails. */
  charged(cost: NestedCost): void;
}

/**
 * Resolves with the reply.
 * @param body not streamed
 * @throws GatewayError as for a client's request, or the reason of the signal
 */
export async function askNested(body: Fields, asking: Asking): Promise<Fields> {
  const { operation, request: outer, signal, serve, parts, charged } = asking;
  signal.throwIfAborted();
  const nested = (outer.nested ?? 0) + 1;
  if (nested > MAX_DEPTH)
    throw new GatewayError('invalid_request', `requests of tools may be nested at most ${MAX_DEPTH} deep`);
  const request = { ...acceptNested(FORMATS[operation], body, outer, parts.clock.now()), nested };
  const sink = new WholeSink((row, metered) => charged(costOf(row, metered)));
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

/** The cost of a request, including requests that its own tools have made. */
function costOf(row: Generation, metered: Metered | undefined): NestedCost {
  const { nano, byokNano } = metered?.nested ?? NOTHING;
  return { nano: row.costNano + nano, byokNano: row.byokNano + byokNano };
}

const NOTHING: NestedCost = { nano: 0n, byokNano: 0n };

function acceptNested(
  format: AnyFormat,
  body: Fields,
  { about, facts, caller, document }: AcceptedRequest,
  now: number,
): AcceptedRequest {
  const { user, sessionId = about.sessionId } = facts;
  const provider = providerRulesOf(document.member('provider'));
  const own = { ...body, stream: false, ...(user !== undefined && { user }), ...(provider && { provider }) };
  // The cache and betas are for the client's request only.
  const { 'anthropic-beta': _, ...headers } = about.headers;
  const nested = { ...about, sessionId, metadata: false, cache: undefined, headers };
  return accept(format, readDocument(Buffer.from(stringifyJson(own))), caller, now, nested);
}

/** Rules of the client about who may receive its data. */
const DATA_RULES = ['only', 'ignore', 'data_collection', 'zdr', 'enforce_distillable_text'];

function providerRulesOf(preferences: unknown): Fields | undefined {
  const rules = Object.entries(fieldsOf(preferences)).filter(([name]) => DATA_RULES.includes(name));
  return rules.length === 0 ? undefined : Object.fromEntries(rules);
}
