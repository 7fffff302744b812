/** An agent of node:http whose connections are made, checked and verified elsewhere. */
import http from 'node:http';
import type net from 'node:net';

export class CheckedAgent extends http.Agent {
  readonly #open: () => Promise<net.Socket>;

  constructor(open: () => Promise<net.Socket>, options: http.AgentOptions = {}) {
    super(options);
    this.#open = open;
  }

  override createConnection(_options: object, done?: (error: Error | null, socket: net.Socket) => void): undefined {
    this.#open().then(
      (socket) => done?.(null, socket),
      (error: Error) => done?.(error, undefined as unknown as net.Socket),
    );
  }
}
