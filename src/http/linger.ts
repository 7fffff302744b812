/**
 * Closes a connection whose client is still sending. The kernel answers unread bytes with a reset, which can destroy
 * the response on its way to the client. So only the gateway's side is closed, and what the client sends is read and
 * dropped until it is done, within limits of bytes and time.
 */
import type { Socket } from 'node:net';
import type { HasTimeout, LingerCore } from './core.ts';

export class Linger implements HasTimeout {
  readonly #socket: Socket;
  readonly #core: LingerCore;
  readonly #beganAt: number;
  readonly #slot: number;
  #receivedAt: number;
  readonly #over: () => void;
  #bytes = 0;

  /** @param over called when lingering ends */
  constructor(socket: Socket, core: LingerCore, over: () => void) {
    this.#over = over;
    this.#socket = socket;
    this.#core = core;
    this.#beganAt = core.clock.monotonic();
    this.#receivedAt = this.#beganAt;
    this.#slot = core.receiving.add(this);
    // Node calls it after a response with `Connection: close`.
    socket.destroySoon = endWriteSide;
  }

  received(bytes: number): void {
    this.#bytes += bytes;
    this.#receivedAt = this.#core.clock.monotonic();
    if (this.#bytes > this.#core.limits.lingerBytes) this.#socket.destroy();
  }

  /** The client has sent all of its request. */
  complete(): void {
    this.stop();
    const socket: Partial<Socket> = this.#socket;
    delete socket.destroySoon;
    if (this.#socket.writableEnded) this.#socket.destroySoon();
  }

  /** The connection is closed, or continues to serve. Idempotent. */
  stop(): void {
    this.#core.receiving.delete(this, this.#slot);
    this.#over();
  }

  checkTimeout(nowMs: number): void {
    const { lingerMs, lingerTotalMs } = this.#core.limits;
    if (nowMs - this.#receivedAt <= lingerMs && nowMs - this.#beganAt <= lingerTotalMs) return;
    this.stop();
    this.#socket.destroy();
  }
}

function endWriteSide(this: Socket): void {
  if (this.writable) this.end();
}
