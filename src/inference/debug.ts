/**
 * What a client sees of a stream's making that asked with `debug: {echo_upstream_body: true}` (wire/chat.md): for each
 * attempted provider the body that was sent, and when things happened. It goes out with the first thing that the stream
 * shows, so that a request that nobody answers still gets a plain error with its status.
 */
import type { Clock } from '../base/clock.ts';
import { scrub } from '../base/log.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { Asked, ServedFormat, Stamp } from '../formats/conversation/format.ts';
import type { UpstreamReceiver } from '../providers/index.ts';

/** A larger body is not kept for the sake of showing it. */
const MAX_SHOWN_BYTES = 1024 * 1024;

/** ChatDebug.timings.event of wire/chat.md. */
export type DebugMoment =
  | 'adapter_request'
  | 'upstream_headers_received'
  | 'first_token_received'
  | 'upstream_body_ended';

/** undefined where nothing was asked for: also without streaming, and in forms that have no such event. */
export function debugTrail(
  asked: Asked,
  format: ServedFormat,
  startedAt: number,
  clock: Clock,
): DebugTrail | undefined {
  if (asked.echoUpstreamBody !== true || !asked.stream || format.debugEvent === undefined) return undefined;
  return new DebugTrail((stamp, debug) => format.debugEvent!(stamp, debug), startedAt, clock);
}

export class DebugTrail {
  readonly #encode: (stamp: Stamp, debug: string) => string;
  readonly #startedAt: number;
  readonly #clock: Clock;
  #waiting: string[] = [];

  constructor(encode: (stamp: Stamp, debug: string) => string, startedAt: number, clock: Clock) {
    this.#encode = encode;
    this.#startedAt = startedAt;
    this.#clock = clock;
  }

  /** A call goes out with `body`; its receiver is called through the returned one. */
  watch(body: Buffer | string, receiver: UpstreamReceiver): UpstreamReceiver {
    this.#waiting.push(`{"echo_upstream_body":${shown(body)},"timings":${this.#timing('adapter_request')}}`);
    return new WatchedReceiver(receiver, this);
  }

  happened(event: DebugMoment, at = this.#clock.now()): void {
    this.#waiting.push(`{"timings":${this.#timing(event, at)}}`);
  }

  /** Events of what has happened since the last time, as text of the stream. */
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
  readonly #trail: DebugTrail;

  constructor(receiver: UpstreamReceiver, trail: DebugTrail) {
    this.#receiver = receiver;
    this.#trail = trail;
  }

  head(status: number, headers: Record<string, string>): void {
    this.#trail.happened('upstream_headers_received');
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

/** The body without credentials, on one line: in JSON a bare line break is nothing but space between its tokens. */
function shown(body: Buffer | string): string {
  const bytes = Buffer.byteLength(body);
  if (bytes <= MAX_SHOWN_BYTES) return scrub(body.toString()).replace(/[\r\n]/g, ' ');
  return JSON.stringify({ omitted: `the body has ${bytes} bytes; up to ${MAX_SHOWN_BYTES} are shown` });
}
