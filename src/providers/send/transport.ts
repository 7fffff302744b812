/** What a transport does: calls, their receivers, and the settings of the one over the network. */
import type { Body } from '../../base/body.ts';
import type { Clock } from '../../base/clock.ts';
import type { EndOfTurn } from '../../base/end-of-turn.ts';
import type { Log } from '../../base/log.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { ProxySettings } from './proxy.ts';

/** All in milliseconds. `firstByte`: dispatch to first body byte; `idle`: between body bytes; `stall`: with heartbeats only; `total`: the whole call. */
export interface Timeouts {
  connect: number;
  firstByte: number;
  idle: number;
  /** Of streamed conversations: nothing of the answer comes, though bytes do. */
  stall: number;
  total: number;
}

/** A body of known length whose content arrives while it is sent. It cannot be sent twice. */
export interface StreamedBody {
  readonly bytes: number;
  /** Read as fast as the upstream takes it, and ended early if the exchange ends. */
  readonly chunks: AsyncIterable<Buffer>;
}

export interface UpstreamRequest {
  /** Absolute URL. */
  url: string;
  /** Default POST. GET and DELETE have no body. */
  method?: 'PUT' | 'GET' | 'DELETE';
  headers: Record<string, string>;
  body: Body;
  /** Replaces `body` where that is too large for memory. */
  streamed?: StreamedBody;
  timeouts: Timeouts;
}

/**
 * Called in order: `head` once, `data` any number of times, then exactly one of `end` and `failed`. `failed` may be the
 * only call.
 */
export interface UpstreamReceiver {
  /** Header names are lower case; only those that `answer-headers.ts` lists. Redirects are not followed. */
  head(status: number, headers: Record<string, string>): void;
  /** Decompressed, so the headers have no `content-encoding`. The receiver may keep the chunk. */
  data(chunk: Buffer): void;
  end(): void;
  /** The kind is refused, timeout, cut or malformed. `sent`: the request may have reached the upstream. */
  failed(failure: UpstreamFailure, sent: boolean): void;
}

export interface UpstreamCall {
  /**
   * Stop and resume the flow of `data`; idempotent. Up to 64 KiB already read may still follow a pause. A pause stops
   * the idle timeout but not the total one.
   */
  pause(): void;
  resume(): void;
  /** Ends the exchange and its connection at once; the receiver is not called again. Idempotent. */
  abort(): void;
}

export interface Transport {
  /** Never calls the receiver before returning. */
  send(request: UpstreamRequest, receiver: UpstreamReceiver): UpstreamCall;
  /** Ends every exchange (its receiver gets `cut`) and every connection. */
  close(): Promise<void>;
}

export interface TransportOptions {
  clock: Clock;
  log: Log;
  /**
   * Most concurrent calls to one origin; further ones are refused. Callers' own limits should be lower. Default 4096.
   */
  connectionsPerOrigin?: number;
  /** How long an unused connection is kept if the upstream gives no hint. Default 4 s. */
  keepAliveMs?: number;
  /** Schedules the end of responses (`UpstreamReceiver.end`). Default: at once. */
  endOfTurn?: EndOfTurn;
  /** Trusted certificate authorities in PEM format, instead of the system's. */
  ca?: string;
  /** Trusted certificate authorities in addition to the system's. */
  extraCa?: string;
  proxy?: ProxySettings;
}
