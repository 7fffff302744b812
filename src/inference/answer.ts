/** Error answers in the client's own form. */

import { GatewayError } from '../base/errors.ts';
import { stringifyJson } from '../base/json.ts';
import type { FailureContext, Stamp } from '../formats/conversation/format.ts';
import { headersOf } from './answer-headers.ts';
import type { AcceptedRequest } from './request.ts';
import type { Task } from './task.ts';

/** Clients such as Codex retry a 429 only when they are told when, and providers do not always say. */
const BUSY = new Set([429, 503]);
const BUSY_SECONDS = 2;

/** Answers a request of which nothing was sent yet. */
export function answerError(
  request: AcceptedRequest,
  task: Pick<Task, 'encodeFailure'>,
  error: GatewayError,
  metadata: FailureContext['metadata'],
): void {
  if (request.sink.closed) return;
  const body = task.encodeFailure(error, {
    generationId: request.id,
    userId: request.caller.organizationId,
    // A bug says nothing of our routing (wire/common.md: "never on 500").
    ...(metadata && error.status !== 500 && { metadata }),
  });
  const headers = { ...headersOf(request), ...error.details.headers };
  const retryAfterSeconds = error.details.retryAfterSeconds ?? (BUSY.has(error.status) ? BUSY_SECONDS : undefined);
  if (retryAfterSeconds !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfterSeconds)));
  request.sink.reply(error.status, headers, stringifyJson(body));
}

/** Whatever was thrown, as something that may be shown. */
export function asGatewayError(error: unknown): GatewayError {
  return error instanceof GatewayError ? error : new GatewayError('server', 'internal error', { cause: error });
}

/** For what runs when the gateway ends: another process, or the next start, can answer it. */
export function shuttingDown(): GatewayError {
  return new GatewayError('provider_overloaded', 'the gateway is shutting down', {
    retryAfterSeconds: 1,
    metadata: { retryable: true },
  });
}

/** For an answer that no endpoint has given. */
export function unservedStamp({ id, asked, startedAt }: AcceptedRequest): Stamp {
  return { id, model: asked.model ?? '', provider: '', created: Math.floor(startedAt / 1000), usage: 'none' };
}

/** Tells a client the end of its answer; why it could not be told, which is a bug of ours. Undefined: it was. */
export function faultOf(tell: () => void): unknown {
  try {
    tell();
    return undefined;
  } catch (cause) {
    return cause;
  }
}
