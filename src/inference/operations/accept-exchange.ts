/** Accepts the request of an HTTP exchange: reads its headers in addition to the body. */
import type { Caller } from '../../access/index.ts';
import { invalidField } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { wireHeader } from '../../base/namespace.ts';
import type { Exchange } from '../../http/operation.ts';
import type { RequestTrace } from '../../tracing/index.ts';
import { accept } from '../accept.ts';
import { regionOf } from '../admission/region.ts';
import { cacheOptionsOf } from '../cache/options.ts';
import type { InferenceParts } from '../parts.ts';
import type { AcceptedRequest, AnyFormat, RequestAbout } from '../request.ts';
import { requestedPromptCaching } from '../turns/prompt-caching.ts';

/** @param document by default the exchange's body */
export function acceptExchange<Format extends AnyFormat>(
  exchange: Exchange<Caller>,
  format: Format,
  parts: InferenceParts,
  document: JsonDocument = exchange.document!,
): AcceptedRequest<Format> {
  return accept(format, document, exchange.caller, exchange.startedAt, aboutOf(exchange, parts));
}

function aboutOf(exchange: Exchange<Caller>, parts: InferenceParts): RequestAbout {
  const { headers, host, requestId } = exchange;
  const metadata = wireHeader(headers, 'metadata') ?? wireHeader(headers, 'experimental-metadata');
  return {
    requestId,
    region: regionOf(host, parts.hosts()),
    userAgent: headers['user-agent'] ?? null,
    origin: headers['referer'] ?? '',
    title: wireHeader(headers, 'title') ?? first(headers['x-title']) ?? null,
    sessionId: sessionIdOf(first(headers['x-session-id'])),
    metadata: metadata !== undefined && metadata.toLowerCase() === 'enabled',
    cache: cacheOptionsOf(headers),
    promptCaching: requestedPromptCaching(headers),
    headers,
    trace: traceOf(exchange, parts),
  };
}

function traceOf(exchange: Exchange<Caller>, { tracer }: InferenceParts): RequestTrace | undefined {
  if (tracer === undefined) return undefined;
  const trace = tracer.begin(exchange);
  trace.passed('receive');
  exchange.trace = trace;
  return trace;
}

/** Validates the header with the rule of the body's `session_id`. */
function sessionIdOf(header: string | undefined): string | null {
  if (header === undefined || header === '') return null;
  if (header.length > 256) throw invalidField('x-session-id', 'must have at most 256 characters');
  return header;
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
