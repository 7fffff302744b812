/**
 * Connections for requests of node:http, made, checked and verified elsewhere. Node's own agent searches for the host of each
 * request, which showed in profiles; this one has a single host.
 */
import http from 'node:http';
import type net from 'node:net';
import type { Clock } from '../../base/clock.ts';

/** Less than what servers keep idle connections for. */
const IDLE_MS = 4_000;
const MOST_IDLE = 16;

/** What node:http passes to its agent. */
interface AgentRequest extends http.ClientRequest {
  onSocket(socket: net.Socket | null, error?: Error): void;
}

export class HostConnections extends http.Agent {
  readonly #open: () => Promise<net.Socket>;
  readonly #clock: Clock;
  /** The most recently used is the last. */
  readonly #idle: net.Socket[] = [];

  constructor(open: () => Promise<net.Socket>, clock: Clock) {
    super({ keepAlive: true });
    this.#open = open;
    this.#clock = clock;
  }

  /** Called by node:http for each request. */
  addRequest(request: AgentRequest): void {
    const socket = this.#idle.pop();
    if (socket !== undefined) {
      request.reusedSocket = true;
      request.onSocket(socket);
      return;
    }
    this.#open().then(
      (fresh) => {
        this.#keep(fresh);
        request.onSocket(fresh);
      },
      (error: Error) => request.onSocket(null, error),
    );
  }

  override destroy(): void {
    for (const socket of this.#idle) socket.destroy();
  }

  /** Takes the connection back after each of its requests. */
  #keep(socket: net.Socket): void {
    const timer = this.#clock.timer(IDLE_MS, () => {
      if (this.#idle.includes(socket)) socket.destroy();
    });
    socket.on('free', () => {
      if (socket.destroyed || !socket.writable || this.#idle.length >= MOST_IDLE) {
        socket.destroy();
        return;
      }
      timer.refresh();
      this.#idle.push(socket);
    });
    socket.on('error', () => {});
    const forget = () => {
      const at = this.#idle.indexOf(socket);
      if (at !== -1) this.#idle.splice(at, 1);
    };
    socket.once('close', () => {
      timer.cancel();
      forget();
    });
    // Unrequested bytes, or the end: it cannot be used again.
    socket.once('end', forget);
    socket.once('agentRemove', forget);
  }
}
