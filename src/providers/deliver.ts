/**
 * One call to a provider: URL, headers, signature, then the transport. This is the only file that combines what a kind
 * defines for these, so all operations call upstreams alike.
 */
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import { type Signature, SignInError } from './auth/sign.ts';
import type { Delivery } from './provider.ts';
import type { Timeouts, Transport, UpstreamCall, UpstreamReceiver, UpstreamRequest } from './send/transport.ts';

export interface DeliveryParts {
  transport: Transport;
  clock: Clock;
  log: Log;
}

/**
 * Sends the call. Never calls the receiver before returning. A signing provider may have to wait for its token: nothing
 * is sent until then, and a failed sign-in calls the receiver's `failed` with `sent` false.
 */
export function deliver(delivery: Delivery, receiver: UpstreamReceiver, parts: DeliveryParts): UpstreamCall {
  const { provider, credential, body, method, contentType, streamed } = delivery;
  const { kind } = provider;
  const path = kind.path?.(delivery) ?? delivery.path;
  const headers = kind.headers(credential);
  if (contentType !== undefined) headers['content-type'] = contentType;
  if (delivery.headers !== undefined) Object.assign(headers, delivery.headers);
  for (const name of kind.forwards ?? []) {
    const value = delivery.clientHeaders?.[name];
    if (typeof value === 'string') headers[name] = value;
  }
  if (provider.headers !== undefined) Object.assign(headers, provider.headers);
  const transport = kind.transport ?? parts.transport;
  const request: UpstreamRequest = {
    url: delivery.url ?? provider.baseUrl + path,
    headers,
    body,
    timeouts: delivery.format === 'image' ? patient(provider.timeouts) : provider.timeouts,
  };
  if (method !== undefined) request.method = method;
  if (streamed !== undefined) request.streamed = streamed;
  if (provider.signer === undefined) return transport.send(request, receiver);
  let signature: Signature | Promise<Signature>;
  try {
    signature = provider.signer.sign({ request, credential, operation: delivery.operation, clock: parts.clock });
  } catch (cause) {
    signature = Promise.reject(cause);
  }
  if (!(signature instanceof Promise)) return transport.send(signed(request, signature), receiver);
  return new SignedCall(request, signature, transport, receiver, parts);
}

/** Images take long without sending a byte, so only the total time is limited. */
function patient(timeouts: Timeouts): Timeouts {
  return { ...timeouts, firstByte: timeouts.total, idle: timeouts.total };
}

function signed(request: UpstreamRequest, signature: Signature): UpstreamRequest {
  return { ...request, headers: { ...request.headers, ...signature } };
}

/** A call that waits for its signature. The wait counts against the connect timeout. */
class SignedCall implements UpstreamCall {
  #call: UpstreamCall | undefined;
  #paused = false;
  #over = false;

  constructor(
    request: UpstreamRequest,
    signature: Promise<Signature>,
    transport: Transport,
    receiver: UpstreamReceiver,
    { clock, log }: DeliveryParts,
  ) {
    const fail = (failure: UpstreamFailure) => {
      if (this.#over) return;
      this.#over = true;
      receiver.failed(failure, false);
    };
    const { connect } = request.timeouts;
    const timer = clock.timer(connect, () =>
      fail({ kind: 'timeout', status: null, message: `signing in at the provider took longer than ${connect} ms` }),
    );
    signature
      .then(
        (headers) => {
          timer.cancel();
          if (this.#over) return;
          this.#call = transport.send(signed(request, headers), receiver);
          if (this.#paused) this.#call.pause();
        },
        (cause: unknown) => {
          timer.cancel();
          if (cause instanceof SignInError) fail(cause.failure);
          else {
            log.error('signing an upstream request failed', { cause });
            fail({ kind: 'auth', status: null, message: 'the call could not be signed' });
          }
        },
      )
      .catch((cause: unknown) => log.error('the receiver of an upstream response threw', { cause }));
  }

  pause(): void {
    this.#paused = true;
    this.#call?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#call?.resume();
  }

  abort(): void {
    this.#over = true;
    this.#call?.abort();
  }
}
