/**
 * One connection to an upstream: opening it (TLS, proxy), writing requests, and when it may be reused. It carries at
 * most one exchange at a time.
 */
import net from 'node:net';
import tls from 'node:tls';
import { bodyBytes, COPIED_BODY_BYTES, joinedBody } from '../../base/body.ts';
import type { Clock } from '../../base/clock.ts';
import { AnswerParser, type AnswerReader, PIECE_BYTES } from '../../http/answer-parser.ts';
import { type ShownHeaders, WANTED_HEADERS } from './answer-headers.ts';
import type { Exchange } from './exchange.ts';
import { openTunnel, type ProxyRoute } from './proxy.ts';
import type { StreamedBody } from './transport.ts';

/** Read buffer of all sockets. A piece is parsed, or copied if kept, before the next is read. */
const PIECE = Buffer.allocUnsafeSlow(PIECE_BYTES);

/** What a connection needs of its origin; implemented in `origin.ts`. */
export interface ConnectionOwner {
  readonly clock: Clock;
  readonly isSecure: boolean;
  readonly target: { host: string; port: number };
  readonly trust: tls.SecureContext | undefined;
  readonly proxy: ProxyRoute | undefined;
  readonly keepAliveMs: number;
  session: Buffer | undefined;
  carry(call: Exchange): void;
  carryOnNew(call: Exchange): void;
  keep(connection: Connection): void;
  forget(connection: Connection): void;
}

export class Connection implements AnswerReader<ShownHeaders> {
  readonly #origin: ConnectionOwner;
  readonly #parser = new AnswerParser(this, WANTED_HEADERS);
  #call: Exchange | undefined;
  #socket: net.Socket;
  #connected = false;
  /** Whether everything received with the last response has been read. */
  #usable = true;
  #gone = false;
  /** The first error of the socket. */
  #error: Error | undefined;
  /** Bytes received while the call was paused. Reading stops then. */
  #kept: Buffer | undefined;
  #upstreamEnded = false;
  #socketClosed = false;
  /** Monotonic ms. From then on the upstream may close the connection, or it is no longer needed. */
  expiresAt = Number.POSITIVE_INFINITY;
  #keepAliveMs: number;
  /** It has carried an exchange, so the upstream may close it while the next request is in transit. */
  #reused = false;
  /** Whether a byte arrived since the request was written. */
  #answering = false;
  #writtenAt = 0;
  /** A streamed body is not written to its end. */
  #bodyOpen = false;

  constructor(origin: ConnectionOwner) {
    this.#origin = origin;
    this.#keepAliveMs = origin.keepAliveMs;
    this.#socket = this.#open();
  }

  get call(): Exchange | undefined {
    return this.#call;
  }

  get isOpen(): boolean {
    return !this.#gone && !this.#socket.destroyed;
  }

  /** Sends the request of `call` as soon as possible and reads its response. */
  carry(call: Exchange): void {
    this.#call = call;
    call.connection = this;
    this.expiresAt = Number.POSITIVE_INFINITY;
    if (this.#connected) this.#socket.ref();
    if (this.#connected && this.#usable) this.#write(call);
  }

  /** The call wants data again. During a pause the kernel's buffers fill up, which slows the upstream. */
  goOn(): void {
    // Deferred, because this may be called while data is being passed on.
    process.nextTick(() => this.#handOnKept());
  }

  /** Everything received with the last response has been read, so new data belongs to the next request. */
  mayBeUsed(): void {
    this.#usable = true;
    // If it closed meanwhile, the close moves the call to another connection.
    if (this.#call?.sent === false && this.isOpen) this.#write(this.#call);
  }

  /** Closes the socket at once, in any state. Resolves when it is closed. */
  discard(): Promise<void> {
    this.#call = undefined;
    this.#leave();
    const socket = this.#socket;
    return new Promise((resolve) => {
      if (socket.closed) resolve();
      else socket.once('close', () => resolve());
    });
  }

  answerHead(status: number, headers: ShownHeaders): void {
    const hint = headers['keep-alive'];
    this.#keepAliveMs = hint === undefined ? this.#origin.keepAliveMs : hintedMs(hint, this.#origin.keepAliveMs);
    this.#call?.answerHead(status, headers);
  }

  answerData(chunk: Buffer): void {
    this.#call?.answerData(chunk);
  }

  answerEnd(reusable: boolean): void {
    const call = this.#call;
    this.#call = undefined;
    const unsent = this.#bodyOpen || this.#socket.writableLength > 0;
    if (reusable && !unsent && !this.#gone && this.#keepAliveMs > 0) this.#keep();
    else this.#leave();
    call?.answerEnd();
  }

  answerMalformed(): void {
    this.#lost('malformed');
  }

  /**
   * Not reused before the next turn of the event loop has read what has arrived: bytes after a response must not become
   * the response to another request.
   */
  #keep(): void {
    this.#usable = false;
    this.#reused = true;
    this.expiresAt = this.#origin.clock.monotonic() + this.#keepAliveMs;
    this.#socket.unref();
    this.#origin.keep(this);
  }

  #leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#parser.free();
    this.#origin.forget(this);
    this.#socket.destroy();
  }

  #write(call: Exchange): void {
    const { head, body, streamed } = call.sending();
    this.#parser.expect();
    this.#answering = false;
    if (this.#reused) this.#writtenAt = this.#origin.clock.monotonic();
    const socket = this.#socket;
    if (streamed !== undefined) {
      socket.write(head, 'latin1');
      this.#bodyOpen = true;
      this.#writeBody(call, streamed).catch((error: Error) => {
        if (this.#call === call) this.#lost(error);
      });
      return;
    }
    const length = bodyBytes(body);
    if (length > COPIED_BODY_BYTES) {
      socket.cork();
      socket.write(head, 'latin1');
      if (Array.isArray(body)) for (const piece of body as readonly Buffer[]) socket.write(piece);
      else socket.write(body as Buffer | string);
      socket.uncork();
      return;
    }
    // A single buffer, which is the fastest way to write.
    const message = Buffer.allocUnsafe(head.length + length);
    message.write(head, 'latin1');
    const whole = joinedBody(body);
    if (typeof whole === 'string') message.write(whole, head.length);
    else whole.copy(message, head.length);
    socket.write(message);
  }

  async #writeBody(call: Exchange, { bytes, chunks }: StreamedBody): Promise<void> {
    let left = bytes;
    for await (const chunk of chunks) {
      left -= chunk.length;
      if (left < 0) break;
      if (!this.#socket.write(chunk)) await this.#drained();
      // The upstream has answered or gone, or the call was aborted.
      if (this.#call !== call || !this.isOpen) return;
    }
    if (left !== 0) throw new Error('the body has another length than announced');
    this.#bodyOpen = false;
  }

  #drained(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = () => {
      this.#socket.off('drain', done);
      this.#socket.off('close', done);
      resolve();
    };
    this.#socket.on('drain', done);
    this.#socket.on('close', done);
    return promise;
  }

  /** Whether the call is paused. Data without a pending response is read regardless. */
  get #holds(): boolean {
    return this.#call?.sent === true && this.#call.holds;
  }

  /** False: stop reading. */
  #received(piece: Buffer): boolean {
    if (this.#gone) return false;
    this.#answering = true;
    if (!this.#holds) {
      this.#parser.read(piece);
      return true;
    }
    // An intermediate stream that read ahead may deliver more.
    this.#kept = this.#kept === undefined ? Buffer.from(piece) : Buffer.concat([this.#kept, piece]);
    return false;
  }

  #handOnKept(): void {
    if (this.#holds || this.#gone) return;
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept !== undefined) this.#parser.read(kept);
    if (this.#holds || this.#gone) return;
    if (this.#upstreamEnded) this.#finish();
    else if (this.#socketClosed) this.#closed();
    else this.#socket.resume();
  }

  /** The upstream closed its side cleanly, and all earlier data has been read. */
  #finish(): void {
    // During a handshake, the socket reports the reason when it closes.
    if (!this.#connected) return;
    this.#upstreamEnded = true;
    if (this.#holds) return;
    if (this.#call?.sent === true) this.#parser.finish();
    this.#lost(this.#error);
  }

  #closed(): void {
    this.#socketClosed = true;
    // Received data is passed on first.
    if (!this.#gone && (this.#kept !== undefined || (this.#upstreamEnded && this.#holds))) return;
    this.#lost(this.#error);
  }

  /** @param reason as in `Exchange.broken` */
  #lost(reason: Error | 'malformed' | undefined): void {
    const call = this.#call;
    this.#call = undefined;
    this.#leave();
    if (call === undefined) return;
    // A call that was waiting for a kept connection has sent nothing.
    if (!call.sent && this.#connected) this.#origin.carry(call);
    else if (this.#closedUnread(reason) && call.again()) this.#origin.carryOnNew(call);
    else call.broken(reason);
  }

  /**
   * Whether the upstream closed an idle connection while the request was in transit: closed or reset at once, without a
   * byte. Decision 010 explains why such a request is sent once more.
   */
  #closedUnread(reason: Error | 'malformed' | undefined): boolean {
    if (!this.#reused || this.#answering || reason === 'malformed') return false;
    if (reason !== undefined && !isClose(reason)) return false;
    return this.#origin.clock.monotonic() - this.#writtenAt <= CLOSING_MS;
  }

  #open(): net.Socket {
    const { target, isSecure, proxy } = this.#origin;
    const onread = { buffer: PIECE, callback: (bytes: number) => this.#received(PIECE.subarray(0, bytes)) };
    if (proxy === undefined) {
      return this.#use(isSecure ? this.#openTls({ ...target, onread }) : net.connect({ ...target, onread }), true);
    }
    const { host, port } = proxy;
    const socket = proxy.secure ? tls.connect(this.#secured({ host, port })) : net.connect({ host, port });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 60_000);
    // Never removed: errors below a tunnel are also reported above it.
    socket.on('error', (error) => {
      this.#error ??= error;
      if (!this.#connected) this.#closed();
    });
    socket.once(proxy.secure ? 'secureConnect' : 'connect', () => {
      openTunnel(socket, target, proxy.authorization, (error) => {
        if (this.#gone) socket.destroy();
        else if (error !== null) {
          this.#error ??= error;
          this.#closed();
        } else if (isSecure) this.#socket = this.#use(this.#openTls({ ...target, socket }), false);
        else {
          this.#use(socket, false);
          this.#ready();
        }
      });
    });
    return socket;
  }

  /** @param direct whether `onread` delivers data, without a stream in between */
  #use(socket: net.Socket, direct: boolean): net.Socket {
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 60_000);
    if (!direct) {
      socket.on('data', (piece: Buffer) => {
        if (!this.#received(piece)) socket.pause();
      });
    }
    socket.on('error', (error) => {
      this.#error ??= error;
    });
    socket.on('end', () => this.#finish());
    socket.on('close', () => this.#closed());
    socket.once(socket instanceof tls.TLSSocket ? 'secureConnect' : 'connect', () => this.#ready());
    return socket;
  }

  #ready(): void {
    this.#connected = true;
    if (this.#call !== undefined) this.#write(this.#call);
  }

  #openTls(options: TlsOptions): tls.TLSSocket {
    const { session } = this.#origin;
    const socket = tls.connect({ ...this.#secured(options), ...(session && { session }) });
    socket.on('session', (fresh: Buffer) => {
      this.#origin.session = fresh;
    });
    return socket;
  }

  #secured(options: TlsOptions): TlsOptions {
    return {
      ...options,
      ALPNProtocols: ['http/1.1'],
      ...(net.isIP(options.host!) === 0 && { servername: options.host! }),
      ...(this.#origin.trust && { secureContext: this.#origin.trust }),
    };
  }
}

/** Node's type declarations lack `onread` for TLS. */
type TlsOptions = tls.ConnectionOptions & Pick<net.SocketConstructorOpts, 'onread'>;

/** A close takes one round trip to arrive. An upstream that closes later was working on the request. */
const CLOSING_MS = 5_000;

function isClose(error: Error): boolean {
  return 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

/** The upstream's keep-alive hint, minus time for a request to arrive. */
function hintedMs(hint: string, otherwiseMs: number): number {
  const seconds = /(?:^|[\s,;])timeout=(\d{1,6})/i.exec(hint)?.[1];
  if (seconds === undefined) return otherwiseMs;
  return Math.min(Number(seconds) * 1000 - MARGIN_MS, LONGEST_MS);
}

const MARGIN_MS = 2_000;
const LONGEST_MS = 600_000;
