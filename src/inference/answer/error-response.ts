/** Error responses in the client's format. */

import { GatewayError } from '../../base/errors.ts';
import { stringifyJson } from '../../base/json.ts';
import type { FailureContext, Stamp } from '../../formats/conversation/format.ts';
import type { RequestContext } from '../context.ts';
import type { AcceptedRequest } from '../request.ts';
import { headersOf } from './response-headers.ts';

/** Clients such as Codex retry a 429 only with a `Retry-After`, which providers do not always send. */
const BUSY = new Set([429, 503]);
const BUSY_SECONDS = 2;

/** Sends an error response. Nothing may have been sent to the client yet. */
export function answerError(context: RequestContext, error: GatewayError, metadata: FailureContext['metadata']): void {
  const { request, sink } = context;
  if (sink.closed) return;
  const body = request.format.encodeFailure(error, {
    generationId: request.id,
    userId: request.caller.organizationId,
    // An internal error must not expose routing details.
    ...(metadata && error.status !== 500 && { metadata }),
  });
  const headers = { ...headersOf(context), ...error.details.headers };
  const retryAfterSeconds = error.details.retryAfterSeconds ?? (BUSY.has(error.status) ? BUSY_SECONDS : undefined);
  if (retryAfterSeconds !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfterSeconds)));
  sink.reply(error.status, headers, stringifyJson(body));
}

/** Wraps any thrown value in an error that may be shown to a client. */
export function asGatewayError(error: unknown): GatewayError {
  return error instanceof GatewayError ? error : new GatewayError('server', 'internal error', { cause: error });
}

/** For requests that are running when the gateway shuts down. Another process, or the next start, can serve a retry. */
export function shuttingDown(): GatewayError {
  return new GatewayError('provider_overloaded', 'the gateway is shutting down', {
    retryAfterSeconds: 1,
    metadata: { retryable: true },
  });
}

/** The stamp of an answer that no endpoint gave. */
export function unservedStamp({ id, facts, startedAt }: AcceptedRequest): Stamp {
  return { id, model: facts.model ?? '', provider: '', created: Math.floor(startedAt / 1000), usage: 'none' };
}

/** Calls `send`, which sends the end of an answer. Returns what it throws, which is a bug of the gateway. */
export function faultOf(send: () => void): unknown {
  try {
    send();
    return undefined;
  } catch (cause) {
    return cause;
  }
}
