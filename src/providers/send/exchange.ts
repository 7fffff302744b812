/**
 * One upstream exchange on a chosen connection: what is sent, which parts of the response pass, how long it waits, and
 * how each way of ending is reported.
 */
import { type Body, bodyBytes } from '../../base/body.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { EndOfTurn } from '../../base/end-of-turn.ts';
import type { Log } from '../../base/log.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import { shownHeaders } from './answer-headers.ts';
import { failure, networkFailure } from './network-failure.ts';
import type { StreamedBody, TransportOptions, UpstreamCall, UpstreamReceiver, UpstreamRequest } from './transport.ts';
import { readEncoding, type UnpackedReceiver, Unpacker } from './unpack.ts';

/** Longer delays overflow Node's timers. A timer that fires early checks its deadlines and waits on. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** What an exchange needs from its connection; implemented in `connection.ts`. */
interface ExchangeConnection {
  /** The exchange is no longer paused. */
  goOn(): void;
  /** Closes the connection at once. */
  discard(): unknown;
}

/** A request as sent: request line and headers with the blank line, latin1, and the body. */
interface RequestMessage {
  head: string;
  body: Body;
  streamed: StreamedBody | undefined;
}

/**
 * One exchange, used by its connection and by the caller. A single timer serves all four timeouts: when it fires it
 * checks which one is due, so each arrival of data costs only a clock read.
 */
export class Exchange implements UpstreamCall, UnpackedReceiver {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #endOfTurn: EndOfTurn | undefined;
  readonly #request: UpstreamRequest;
  readonly #receiver: UpstreamReceiver;
  readonly #startedAt: number;
  /** When it began to wait for its connection; later than `#startedAt` if a closed one is replaced. */
  #openingAt: number;
  /** The connection that currently carries it. */
  connection: ExchangeConnection | undefined;
  #head = '';
  #timer: Timer | undefined;
  /** Whether `send` has returned, so that the receiver may be called. */
  #returned = false;
  #done = false;
  /** Aborted: the caller must not be called again. */
  #silenced = false;
  /** Whether bytes of the request may have been sent, so that incoming data is its response. */
  sent = false;
  /** Whether it is a repetition after a kept connection closed. */
  #repeated = false;
  #status: number | null = null;
  #lastByteAt: number | undefined;
  #paused = false;
  #pausedAt = 0;
  /** The sum of pauses that are over. */
  #pausedMs = 0;
  #unpacker: Unpacker | undefined;
  /** The body has an encoding that is not supported, so none of it is passed on. */
  #unreadable = false;
  /** Whether the unpacker's buffer is full. */
  #unpackerFull = false;

  constructor(
    options: Pick<TransportOptions, 'clock' | 'log' | 'endOfTurn'>,
    request: UpstreamRequest,
    receiver: UpstreamReceiver,
  ) {
    this.#clock = options.clock;
    this.#log = options.log;
    this.#endOfTurn = options.endOfTurn;
    this.#request = request;
    this.#receiver = receiver;
    this.#startedAt = options.clock.monotonic();
    this.#openingAt = this.#startedAt;
  }

  /** False: the request is not valid HTTP. */
  prepare(host: string, path: string): boolean {
    const head = requestHead(this.#request, host, path);
    this.#head = head ?? '';
    return head !== undefined;
  }

  /** The caller has received the call object: the receiver may be called, and timeouts start. */
  returned(): void {
    this.#returned = true;
    if (!this.#done) this.#arm();
  }

  refuse(message: string): void {
    this.fail(failure('refused', message, null));
  }

  pause(): void {
    if (this.#paused || this.#done) return;
    this.#paused = true;
    this.#pausedAt = this.#clock.monotonic();
    this.#unpacker?.pause();
  }

  resume(): void {
    if (!this.#paused || this.#done) return;
    this.#paused = false;
    this.#pausedMs += this.#clock.monotonic() - this.#pausedAt;
    if (this.#lastByteAt !== undefined) this.#lastByteAt = this.#clock.monotonic();
    this.#unpacker?.resume();
    if (!this.holds) this.connection?.goOn();
  }

  /** Whether the response is paused. */
  get holds(): boolean {
    return this.#paused || this.#unpackerFull;
  }

  abort(): void {
    this.#silenced = true;
    this.#stop();
  }

  /** Ends the exchange and its connection, and reports why. */
  fail(reason: UpstreamFailure): void {
    if (this.#done) return;
    const known = this.#heldBack() ? { ...reason, heldBack: true } : reason;
    this.#stop();
    if (this.#returned) this.#report(known);
    else queueMicrotask(() => this.#report(known));
  }

  /** The response was paused for at least half of the time. */
  #heldBack(): boolean {
    if (!this.#paused && this.#pausedMs === 0) return false;
    const now = this.#clock.monotonic();
    const pausedMs = this.#pausedMs + (this.#paused ? now - this.#pausedAt : 0);
    return pausedMs * 2 >= now - this.#startedAt;
  }

  /** The bytes for the connection to write. */
  sending(): RequestMessage {
    this.sent = true;
    const { method, body, streamed } = this.#request;
    return { head: this.#head, body: hasBody(method) ? body : '', streamed };
  }

  /**
   * The kept connection closed before the upstream read the request. Returns true once: the request then waits for a
   * new connection as if it had not been sent.
   */
  again(): boolean {
    if (this.#done || this.#repeated || this.#request.streamed !== undefined) return false;
    this.#repeated = true;
    this.sent = false;
    this.connection = undefined;
    this.#openingAt = this.#clock.monotonic();
    this.#timer?.cancel();
    this.#arm();
    return true;
  }

  answerHead(status: number, headers: Record<string, string>): void {
    if (this.#done) return;
    this.#status = status;
    const encoding = readEncoding(headers['content-encoding']);
    if (encoding === undefined && status < 300) {
      this.fail(failure('malformed', 'the content-encoding of the upstream is not supported', status));
      return;
    }
    if (encoding === undefined) {
      // An error status says enough without its text, and its wait is in the head.
      this.#unreadable = true;
    } else if (encoding !== null) {
      this.#unpacker = new Unpacker(encoding, this);
      if (this.#paused) this.#unpacker.pause();
    }
    try {
      this.#receiver.head(status, shownHeaders(headers, this.#clock));
    } catch (cause) {
      this.#fault(cause);
    }
  }

  answerData(chunk: Buffer): void {
    if (this.#done) return;
    this.#lastByteAt = this.#clock.monotonic();
    if (this.#unreadable) return;
    if (this.#unpacker === undefined) {
      this.unpacked(chunk);
    } else if (!this.#unpacker.write(chunk)) {
      this.#unpackerFull = true;
    }
  }

  /** The response is complete, and the connection no longer carries it. */
  answerEnd(): void {
    if (this.#done) return;
    this.connection = undefined;
    if (this.#unpacker !== undefined) this.#unpacker.end();
    else if (this.#endOfTurn === undefined) this.unpackedEnd();
    else this.#endOfTurn(() => this.unpackedEnd(), 'answer');
  }

  /** The connection is gone, perhaps with an error. `malformed`: the received bytes were not HTTP. */
  broken(error: Error | 'malformed' | undefined): void {
    if (this.#done) return;
    const progress = !this.sent ? 'connecting' : this.#status === null ? 'waiting' : 'answering';
    const reason = networkFailure(error, progress, this.#status);
    this.connection = undefined;
    if (this.#unpacker === undefined) this.fail(reason);
    else this.#unpacker.drain(() => this.fail(reason));
  }

  unpacked(chunk: Buffer): void {
    if (this.#done) return;
    try {
      this.#receiver.data(chunk);
    } catch (cause) {
      this.#fault(cause);
    }
  }

  unpackedEnd(): void {
    if (this.#done) return;
    this.#finish();
    // Compressed data that ended before the response did: nothing waits for the rest.
    this.connection?.discard();
    try {
      this.#receiver.end();
    } catch (cause) {
      this.#logFault(cause);
      this.#report(this.#unprocessed());
    }
  }

  unpackFailed(): void {
    this.fail(failure('malformed', "the upstream's compressed answer is damaged or incomplete", this.#status));
  }

  unpackDrained(): void {
    this.#unpackerFull = false;
    if (!this.#done && !this.holds) this.connection?.goOn();
  }

  #report(reason: UpstreamFailure): void {
    if (this.#silenced) return;
    this.#silenced = true;
    try {
      this.#receiver.failed(reason, this.sent);
    } catch (cause) {
      this.#logFault(cause);
    }
  }

  /** The receiver threw, which is a bug in the gateway; the receiver still learns that nothing more follows. */
  #fault(cause: unknown): void {
    this.#logFault(cause);
    this.fail(this.#unprocessed());
  }

  #unprocessed(): UpstreamFailure {
    return failure('cut', 'the answer of the upstream could not be processed', this.#status);
  }

  #logFault(cause: unknown): void {
    this.#log.error('the receiver of an upstream response threw', { cause });
  }

  #stop(): void {
    if (this.#done) return;
    this.#finish();
    this.#unpacker?.destroy();
    this.connection?.discard();
  }

  #finish(): void {
    this.#done = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    const dueAt = Math.min(this.#startedAt + this.#request.timeouts.total, this.#phaseDueAt());
    const delayMs = Math.min(Math.max(dueAt - this.#clock.monotonic(), 0), MAX_DELAY_MS);
    // Rounded up, because Node's timers may fire a fraction of a millisecond early.
    this.#timer = this.#clock.timer(Math.ceil(delayMs), () => this.#checkTime());
  }

  /** The deadline of the current phase. */
  #phaseDueAt(): number {
    const { connect, firstByte, idle } = this.#request.timeouts;
    if (this.#lastByteAt === undefined) {
      const answerDueAt = this.#startedAt + firstByte;
      return this.sent ? answerDueAt : Math.min(this.#openingAt + connect, answerDueAt);
    }
    if (this.holds) return this.#clock.monotonic() + idle;
    return this.#lastByteAt + idle;
  }

  #checkTime(): void {
    const now = this.#clock.monotonic();
    const { connect, firstByte, idle, total } = this.#request.timeouts;
    if (now >= this.#startedAt + total) {
      const what = this.#heldBack() ? 'the client did not read' : 'the upstream did not complete';
      this.fail(failure('timeout', `${what} its answer within ${total} ms`, this.#status));
    } else if (now < this.#phaseDueAt()) {
      this.#arm();
    } else if (this.#lastByteAt !== undefined) {
      this.fail(
        failure('timeout', `the upstream sent nothing for ${idle} ms in the middle of its answer`, this.#status),
      );
    } else if (this.sent) {
      this.fail(failure('timeout', `the upstream did not begin its answer within ${firstByte} ms`, this.#status));
    } else {
      const message = `no connection to the upstream could be made within ${Math.min(connect, firstByte)} ms`;
      this.fail(failure('timeout', message, null));
    }
  }
}

/** A header name, except those that determine framing or destination. */
const NAME =
  /^(?!(?:connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$)[!#$%&'*+\-.^_`|~\w]+$/i;
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const NO_PATH = /[^\x21-\x7e\x80-\xff]/;

/**
 * Built from scratch: the caller's headers, framing headers, and no compression. Undefined if a value could end its
 * line or the request.
 */
function requestHead(request: UpstreamRequest, host: string, path: string): string | undefined {
  const { method, headers, body, streamed } = request;
  if (NO_PATH.test(path)) return undefined;
  let head = `${method ?? 'POST'} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\naccept-encoding: identity\r\n`;
  let typed = false;
  for (const name in headers) {
    const value = headers[name]!;
    if (!NAME.test(name) || NO_VALUE.test(value)) return undefined;
    if (name.length === 12 && name.toLowerCase() === 'content-type') typed = true;
    head += `${name}: ${value}\r\n`;
  }
  if (!typed) head += 'content-type: application/json\r\n';
  if (!hasBody(method)) return `${head}\r\n`;
  return `${head}content-length: ${streamed === undefined ? bodyBytes(body) : streamed.bytes}\r\n\r\n`;
}

function hasBody(method: UpstreamRequest['method']): boolean {
  return method === undefined || method === 'PUT';
}
