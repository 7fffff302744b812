/**
 * Events of a stream with `debug: {echo_upstream_body: true}`: the body sent to each attempted provider, and when
 * things happened. They are sent with the stream's first output, so that a request that fails before it still gets a
 * plain error response with its status.
 */
import { type Body, bodyBytes, joinedBody } from '../../base/body.ts';
import type { Clock } from '../../base/clock.ts';
import { scrub } from '../../base/log.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Stamp } from '../../formats/conversation/format.ts';
import type { UpstreamReceiver } from '../../providers/index.ts';
import type { AcceptedRequest } from '../request.ts';

/** Larger bodies are not kept; the event states their size instead. */
const MAX_ECHOED_BYTES = 1024 * 1024;

/** Values of `timings.event` in debug events. */
type DebugMoment = 'adapter_request' | 'upstream_headers_received' | 'first_token_received' | 'upstream_body_ended';

/** Undefined if the client did not ask for it, does not stream, or uses a format without such an event. */
export function debugEvents({ facts, format, startedAt }: AcceptedRequest, clock: Clock): DebugEvents | undefined {
  if (facts.echoUpstreamBody !== true || !facts.stream) return undefined;
  if (!('debugEvent' in format) || format.debugEvent === undefined) return undefined;
  return new DebugEvents((stamp, debug) => format.debugEvent!(stamp, debug), startedAt, clock);
}

export class DebugEvents {
  readonly #encode: (stamp: Stamp, debug: string) => string;
  readonly #startedAt: number;
  readonly #clock: Clock;
  #waiting: string[] = [];

  constructor(encode: (stamp: Stamp, debug: string) => string, startedAt: number, clock: Clock) {
    this.#encode = encode;
    this.#startedAt = startedAt;
    this.#clock = clock;
  }

  /** Records that a call goes out with `body`, and returns a receiver that wraps the given one. */
  watch(body: Body, receiver: UpstreamReceiver): UpstreamReceiver {
    this.#waiting.push(`{"echo_upstream_body":${scrubbed(body)},"timings":${this.#timing('adapter_request')}}`);
    return new WatchedReceiver(receiver, this);
  }

  record(event: DebugMoment, at = this.#clock.now()): void {
    this.#waiting.push(`{"timings":${this.#timing(event, at)}}`);
  }

  /** The events since the last call, as text of the stream. */
  take(stamp: Stamp): string {
    if (this.#waiting.length === 0) return '';
    const events = this.#waiting;
    this.#waiting = [];
    return events.map((debug) => this.#encode(stamp, debug)).join('');
  }

  #timing(event: DebugMoment, now = this.#clock.now()): string {
    return JSON.stringify({ event, start_ms: Math.round(now - this.#startedAt), epoch_ms: Math.round(now) });
  }
}

class WatchedReceiver implements UpstreamReceiver {
  readonly #receiver: UpstreamReceiver;
  readonly #events: DebugEvents;

  constructor(receiver: UpstreamReceiver, events: DebugEvents) {
    this.#receiver = receiver;
    this.#events = events;
  }

  head(status: number, headers: Record<string, string>): void {
    this.#events.record('upstream_headers_received');
    this.#receiver.head(status, headers);
  }

  data(chunk: Buffer): void {
    this.#receiver.data(chunk);
  }

  end(): void {
    this.#receiver.end();
  }

  failed(failure: UpstreamFailure, sent: boolean): void {
    this.#receiver.failed(failure, sent);
  }
}

/** The body without credentials, on one line: between JSON tokens, line breaks are plain white space. */
function scrubbed(body: Body): string {
  const bytes = bodyBytes(body);
  if (bytes <= MAX_ECHOED_BYTES) return scrub(joinedBody(body).toString()).replace(/[\r\n]/g, ' ');
  return JSON.stringify({ omitted: `the body has ${bytes} bytes; up to ${MAX_ECHOED_BYTES} are shown` });
}
