/** TCP proxies for tests: one whose network breaks, and one that spreads connections over several gateways. */
import { mkdirSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { systemClock as clock, sleep } from '../../../src/base/clock.ts';

type Address = { path: string } | { host: string; port: number };

/** Forwards connections to an address, and can break them: cut, black hole, delay. */
export class FaultProxy {
  readonly #target: Address;
  readonly #sockets = new Set<net.Socket>();
  readonly #server: net.Server;
  #delayMs = 0;
  #silent = false;

  constructor(target: Address) {
    this.#target = target;
    this.#server = net.createServer((client) => {
      const server = net.connect(this.#target);
      this.#forward(client, server);
      this.#forward(server, client);
    });
  }

  /** Listens on a Unix socket of this name; without one, on a free port. */
  async listen(socket?: string): Promise<this> {
    if (socket !== undefined) mkdirSync(path.dirname(socket), { recursive: true });
    await new Promise<void>((resolve) => {
      if (socket === undefined) this.#server.listen(0, '127.0.0.1', resolve);
      else this.#server.listen(socket, resolve);
    });
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Closes every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Loses what is sent for this long: nothing arrives, no connection is refused, and afterwards all are closed. */
  async blackHole(ms: number): Promise<void> {
    this.#silent = true;
    await sleep(clock, ms);
    this.#silent = false;
    this.cut();
  }

  /** Everything arrives this much later, for a while. */
  async delay(byMs: number, ms: number): Promise<void> {
    this.#delayMs = byMs;
    await sleep(clock, ms);
    this.#delayMs = 0;
  }

  close(): void {
    this.#server.close();
    this.cut();
  }

  /** One direction. Chunks and the end keep their order, whatever delay each of them has. */
  #forward(from: net.Socket, to: net.Socket): void {
    this.#sockets.add(from);
    let before = Promise.resolve();
    const inOrder = (action: () => void) => {
      const wait = this.#delayMs === 0 ? undefined : sleep(clock, this.#delayMs);
      before = before.then(() => wait).then(action);
    };
    from.on('data', (chunk) => {
      if (this.#silent) return;
      inOrder(() => {
        if (to.writable && !to.write(chunk)) from.pause();
      });
    });
    to.on('drain', () => from.resume());
    from.on('end', () => inOrder(() => to.end()));
    from.on('error', () => to.destroy());
    from.on('close', () => {
      this.#sockets.delete(from);
      inOrder(() => to.destroySoon());
    });
  }
}

/** A load balancer without health checks: each connection goes to the next gateway that accepts it. */
export class Spreader {
  readonly #ports: () => readonly number[];
  readonly #server: net.Server;
  #next = 0;

  /** @param ports of the gateways that are expected to run now */
  constructor(ports: () => readonly number[]) {
    this.#ports = ports;
    this.#server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
      client.on('error', () => {});
      this.#pass(client, this.#ports().length);
    });
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => void this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
  }

  #pass(client: net.Socket, tries: number): void {
    const ports = this.#ports();
    const port = ports[this.#next++ % ports.length];
    if (tries === 0 || port === undefined) return void client.destroy();
    const server = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const refused = () => this.#pass(client, tries - 1);
    server.once('error', refused);
    server.once('connect', () => {
      server.off('error', refused);
      server.on('error', () => client.destroy());
      server.on('close', () => client.destroySoon());
      client.on('close', () => server.destroy());
      client.pipe(server);
      server.pipe(client);
    });
  }
}
