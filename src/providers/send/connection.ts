/**
 * One connection to an upstream: how it is opened (TLS, through a proxy), what goes over it, when it may be used again. At
 * most one exchange at a time.
 */
import net from 'node:net';
import tls from 'node:tls';
import { AnswerParser, type AnswerReader, PIECE_BYTES } from './answer-parser.ts';
import { type Exchange, isWanted } from './exchange.ts';
import type { Origin } from './origin.ts';
import { openTunnel } from './proxy.ts';

/** What sockets read into; a piece is looked at, and copied where it is kept, before the next one is read. */
const PIECE = Buffer.allocUnsafeSlow(PIECE_BYTES);
/** A larger body is not copied to stand behind its head. */
const COPIED_BODY_BYTES = 64 * 1024;

export class Connection implements AnswerReader {
  readonly #origin: Origin;
  readonly #parser = new AnswerParser(this, isWanted);
  #call: Exchange | undefined;
  #socket: net.Socket;
  #connected = false;
  /** All that had come by the end of the last answer has been looked at. */
  #rested = true;
  #gone = false;
  /** The first reason that the socket gave for closing. */
  #error: Error | undefined;
  /** What came while the call wanted nothing; no more than that is read. */
  #kept: Buffer | undefined;
  #upstreamEnded = false;
  #socketClosed = false;
  /** Milliseconds of the monotonic clock; from then on the upstream may close it, or nobody needs it. */
  expiresAt = Number.POSITIVE_INFINITY;
  #keepAliveMs: number;
  /** It has carried an exchange before, so the upstream may close it while the next request is on its way. */
  #reused = false;
  /** A byte has come since the request was written. */
  #answering = false;
  #writtenAt = 0;

  constructor(origin: Origin) {
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

  /** Sends the request of `call` as soon as it can, and reads the answer for it. */
  carry(call: Exchange): void {
    this.#call = call;
    call.connection = this;
    this.expiresAt = Number.POSITIVE_INFINITY;
    if (this.#connected) this.#socket.ref();
    if (this.#connected && this.#rested) this.#write(call);
  }

  /** The call wants more again. While it holds, the kernel's buffers fill, and the upstream has to wait. */
  goOn(): void {
    // Not at once: this may be called from within what is handed on.
    process.nextTick(() => this.#handOnKept());
  }

  /** All that has come with the last answer has been seen, so what comes now is the answer to the next request. */
  rested(): void {
    this.#rested = true;
    // What has closed it meanwhile finds the call another one.
    if (this.#call?.sent === false && this.isOpen) this.#write(this.#call);
  }

  /** Closes the socket at once, whatever it is doing. Resolves when it is closed. */
  discard(): Promise<void> {
    this.#call = undefined;
    this.#leave();
    const socket = this.#socket;
    return new Promise((resolve) => {
      if (socket.closed) resolve();
      else socket.once('close', () => resolve());
    });
  }

  answerHead(status: number, headers: Record<string, string>): void {
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
    const unsent = this.#socket.writableLength > 0;
    if (reusable && !unsent && !this.#gone && this.#keepAliveMs > 0) this.#rest();
    else this.#leave();
    call?.answerEnd();
  }

  answerMalformed(): void {
    this.#lost('malformed');
  }

  /**
   * Not used again before the next turn of the event loop has read what there is: what an upstream sends behind an answer
   * must not be taken for the answer to another request.
   */
  #rest(): void {
    this.#rested = false;
    this.#reused = true;
    this.expiresAt = this.#origin.clock.monotonic() + this.#keepAliveMs;
    this.#socket.unref();
    this.#origin.rest(this);
  }

  #leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#parser.free();
    this.#origin.forget(this);
    this.#socket.destroy();
  }

  #write(call: Exchange): void {
    const { head, body } = call.sending();
    this.#parser.expect();
    this.#answering = false;
    if (this.#reused) this.#writtenAt = this.#origin.clock.monotonic();
    const socket = this.#socket;
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    if (length > COPIED_BODY_BYTES) {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(body);
      socket.uncork();
      return;
    }
    // One piece, which the kernel takes by the quickest way there is.
    const message = Buffer.allocUnsafe(head.length + length);
    message.write(head, 'latin1');
    if (typeof body === 'string') message.write(body, head.length);
    else body.copy(message, head.length);
    socket.write(message);
  }

  /** The call wants nothing of its answer for now. What comes when none is due is looked at all the same. */
  get #holds(): boolean {
    return this.#call?.sent === true && this.#call.holds;
  }

  /** False: no more for now. */
  #received(piece: Buffer): boolean {
    if (this.#gone) return false;
    this.#answering = true;
    if (!this.#holds) {
      this.#parser.read(piece);
      return true;
    }
    // More may come where the stream in between had read ahead.
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

  /** The upstream has closed its side in order; nothing of what came before is left to read. */
  #finish(): void {
    // During a handshake the socket says why when it is closed.
    if (!this.#connected) return;
    this.#upstreamEnded = true;
    if (this.#holds) return;
    if (this.#call?.sent === true) this.#parser.finish();
    this.#lost(this.#error);
  }

  #closed(): void {
    this.#socketClosed = true;
    // What had come is handed on first.
    if (!this.#gone && (this.#kept !== undefined || (this.#upstreamEnded && this.#holds))) return;
    this.#lost(this.#error);
  }

  /** @param reason as `Exchange.broken` has it */
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
   * The upstream closed a kept connection for being unused while the request was on its way: it came back without a byte,
   * at once, in order or by a reset. Decision 010 says why such a request goes out once more.
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
    // Stays: what breaks below a tunnel is told above it too.
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

  /** @param direct what is read comes without a stream in between */
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

/** node's declarations lack that TLS can be read as TCP is. */
type TlsOptions = tls.ConnectionOptions & Pick<net.SocketConstructorOpts, 'onread'>;

/** A close takes one round trip to be noticed. An upstream that closes later was working on the request. */
const CLOSING_MS = 5_000;

function isClose(error: Error): boolean {
  return 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

/** What the upstream says of how long it keeps a connection, with time for a request to get there. */
function hintedMs(hint: string, otherwiseMs: number): number {
  const seconds = /(?:^|[\s,;])timeout=(\d{1,6})/i.exec(hint)?.[1];
  if (seconds === undefined) return otherwiseMs;
  return Math.min(Number(seconds) * 1000 - MARGIN_MS, LONGEST_MS);
}

const MARGIN_MS = 2_000;
const LONGEST_MS = 600_000;
