/**
 * One upstream exchange: connection pool, timeouts, abort, size limits. The only place besides the checked egress that
 * opens connections to upstreams. Contract; the implementation follows.
 */
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { Timeouts } from './provider.ts';

export interface UpstreamRequest {
  /** Absolute URL. */
  url: string;
  headers: Record<string, string>;
  body: Buffer | string;
  timeouts: Timeouts;
}

/** Called in order: `head` once, `data` any number of times, then exactly one of `end` and `failed`. `failed` may be the only call. */
export interface UpstreamReceiver {
  /** Header names are lower case. */
  head(status: number, headers: Record<string, string>): void;
  data(chunk: Buffer): void;
  end(): void;
  /** refused, timeout, cut or malformed; `sent` tells whether the request may have reached the upstream. */
  failed(failure: UpstreamFailure, sent: boolean): void;
}

export interface UpstreamCall {
  /** Stop and resume the flow of `data`; idempotent. */
  pause(): void;
  resume(): void;
  /** Ends the exchange and its connection at once; the receiver is not called again. Idempotent. */
  abort(): void;
}

export interface Transport {
  send(request: UpstreamRequest, receiver: UpstreamReceiver): UpstreamCall;
  close(): Promise<void>;
}
