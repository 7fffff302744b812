/** A transport with a test clock, an upstream, and a strict receiver, for the tests of `src/providers/send/`. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import { after, afterEach, before, beforeEach } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { Body } from '../../../src/base/body.ts';
import { endOfTurn } from '../../../src/base/end-of-turn.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { UpstreamFailure } from '../../../src/formats/conversation/failure.ts';
import {
  createTransport,
  type Transport,
  type TransportOptions,
  type UpstreamCall,
  type UpstreamReceiver,
} from '../../../src/providers/send/index.ts';
import { settle, TestClock, until } from '../../../src/testing/clock/clock.ts';
import { type Answer, startUpstream, type Upstream } from '../../../src/testing/upstream/upstream.ts';

export const TIMEOUTS = { connect: 1000, firstByte: 5000, idle: 2000, stall: 60_000, total: 60_000 };
export const CANARY = 'sk-canary-5f1d';

/** Records its calls, and fails the test if called after the end. */
export class Recorder implements UpstreamReceiver {
  status: number | undefined;
  headers: Record<string, string> = {};
  chunks: Buffer[] = [];
  bytes = 0;
  ended = false;
  failure: UpstreamFailure | undefined;
  sent: boolean | undefined;
  keep = true;
  onData: ((chunk: Buffer) => void) | undefined;

  get over(): boolean {
    return this.ended || this.failure !== undefined;
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }

  head(status: number, headers: Record<string, string>): void {
    assert.equal(this.status, undefined, 'head came twice');
    assert.ok(!this.over);
    this.status = status;
    this.headers = headers;
  }

  data(chunk: Buffer): void {
    assert.ok(!this.over && this.status !== undefined, 'data out of order');
    this.bytes += chunk.length;
    if (this.keep) this.chunks.push(chunk);
    this.onData?.(chunk);
  }

  end(): void {
    assert.ok(!this.over && this.status !== undefined, 'end out of order');
    this.ended = true;
  }

  failed(failure: UpstreamFailure, sent: boolean): void {
    assert.ok(!this.over, 'failed after the end');
    this.failure = failure;
    this.sent = sent;
  }
}

export interface Sent {
  receiver: Recorder;
  call: UpstreamCall;
}

/** One for the tests of a file; the clock and the transport are new for each test. */
export class TransportBench {
  upstream!: Upstream;
  clock!: TestClock;
  transport!: Transport;
  #keys = 0;
  readonly #servers: net.Server[] = [];
  readonly #workers: Worker[] = [];
  readonly #sockets = new Set<Socket>();

  constructor() {
    before(async () => {
      this.upstream = await startUpstream();
    });
    after(() => this.upstream.close());
    beforeEach(() => {
      this.clock = new TestClock();
      this.use({});
    });
    afterEach(async () => {
      await this.transport.close();
      for (const socket of this.#sockets) socket.destroy();
      for (const server of this.#servers.splice(0)) server.close();
      for (const worker of this.#workers.splice(0)) await worker.terminate();
    });
  }

  /** Replaces the transport. */
  use(options: Partial<TransportOptions>): void {
    this.transport = createTransport({ clock: this.clock, log: silentLog, endOfTurn: endOfTurn(), ...options });
  }

  send = (url: string, body: Body = '{"model":"m"}', headers: Record<string, string> = {}): Sent => {
    const receiver = new Recorder();
    const call = this.transport.send({ url, headers, body, timeouts: TIMEOUTS }, receiver);
    assert.ok(!receiver.over, 'the receiver was called before send returned');
    return { receiver, call };
  };

  exchange = async (url: string, body?: Body, headers?: Record<string, string>): Promise<Recorder> => {
    const { receiver } = this.send(url, body, headers);
    await until(() => receiver.over, 'the exchange is over');
    return receiver;
  };

  /** The base URL of a new provider of the upstream that answers this. */
  scripted = (answer: Answer | Answer[]): string => this.upstream.script(`t${this.#keys++}`, answer);

  /** The requests that the upstream got at a base URL of `scripted`. */
  requests = (baseUrl: string): ReturnType<Upstream['requests']> => this.upstream.requests(keyOf(baseUrl));

  /** A server without HTTP: `serve` gets each connection. */
  rawServer = async (serve: (socket: Socket) => void): Promise<string> => {
    const server = net.createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => this.#sockets.delete(socket));
      serve(socket);
    });
    this.#servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  };

  /** A listener that accepts nothing and whose queue is full: a further connection is neither accepted nor refused. */
  unansweredAddress = async (): Promise<string> => {
    const script = `
    const { parentPort } = require('node:worker_threads');
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      // From here on this thread accepts no connections.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
    const worker = new Worker(script, { eval: true });
    this.#workers.push(worker);
    const [port] = (await once(worker, 'message')) as [number];
    for (let full = false; !full; ) {
      const socket = net.connect(port, '127.0.0.1');
      this.#sockets.add(socket);
      socket.on('error', () => {});
      let connected = false;
      socket.on('connect', () => (connected = true));
      await settle(10);
      full = !connected;
    }
    return `http://127.0.0.1:${port}/v1`;
  };
}

export function keyOf(baseUrl: string): string {
  return baseUrl.slice(baseUrl.lastIndexOf('/') + 1);
}
