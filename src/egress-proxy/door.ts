/**
 * The listener for sandboxes on other machines: a TLS connection begins with the key of its sandbox, and is passed on to that sandbox's
 * socket. A second port never answers: if a sandbox can connect to it, the network of the sandbox is not restricted as it should be.
 */
import net from 'node:net';
import tls from 'node:tls';
import { Allowance } from '../base/allowance.ts';
import type { Clock } from '../base/clock.ts';
import { DOOR_NAME, keyHash } from './door-key.ts';
import type { DoorNews, DoorSettings } from './settings.ts';
import { LeafIssuer } from './trust/leaf-issuer.ts';

/** Of a key: 256 bits in hexadecimal digits. A line break follows. */
const KEY_CHARACTERS = 64;
/** Connections whose key has not arrived. */
const MOST_UNKNOWN = 256;
const KEY_MS = 10_000;
/** A certificate lasts for a day. */
const RENEWAL_MS = 12 * 3_600_000;

export class Door {
  readonly #clock: Clock;
  readonly #issuer: LeafIssuer;
  readonly #server: tls.Server;
  readonly #forbidden: net.Server;
  readonly #unknown = new Allowance(MOST_UNKNOWN);
  readonly #sockets = new Map<string, string>();

  constructor({ authority }: Pick<DoorSettings, 'authority'>, clock: Clock) {
    this.#clock = clock;
    this.#issuer = new LeafIssuer(authority, clock);
    this.#server = tls.createServer({ ...this.#certificate(), allowHalfOpen: true, handshakeTimeout: KEY_MS });
    this.#server.on('secureConnection', (client) => this.#accept(client));
    this.#server.on('tlsClientError', (_error, client) => client.destroy());
    this.#forbidden = net.createServer((client) => client.destroy());
    this.#renew();
  }

  /** @returns the ports, or why it cannot listen */
  async listen({ host, ports, forbiddenPort }: DoorSettings): Promise<DoorNews> {
    let problem = 'no port is given';
    for (let port = ports.from; port <= ports.to; port += 1) {
      try {
        await listening(this.#server, host, port);
        return { port, forbiddenPort: await listening(this.#forbidden, host, forbiddenPort) };
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        problem = `${host}:${port}: ${code ?? message}`;
        if (code !== 'EADDRINUSE') break;
      }
    }
    return { problem };
  }

  /** @param hash of the key @param path of the sandbox's socket */
  admit(hash: string, path: string): void {
    this.#sockets.set(hash, path);
  }

  /** Open connections end with the sandbox's socket. */
  expel(hash: string): void {
    this.#sockets.delete(hash);
  }

  #certificate(): { cert: string; key: string } {
    const { certificate, key } = this.#issuer.issue(DOOR_NAME);
    return { cert: certificate, key };
  }

  #renew(): void {
    this.#clock.timer(RENEWAL_MS, () => {
      this.#server.setSecureContext(this.#certificate());
      this.#renew();
    });
  }

  #accept(client: tls.TLSSocket): void {
    client.on('error', () => client.destroy());
    if (!this.#unknown.take(1)) return void client.destroy();
    const timer = this.#clock.timer(KEY_MS, () => client.destroy());
    let isKnown = false;
    const known = () => {
      if (isKnown) return;
      isKnown = true;
      timer.cancel();
      this.#unknown.release(1);
    };
    client.once('close', known);
    const read = () => {
      const line = client.read(KEY_CHARACTERS + 1) as Buffer | null;
      if (line === null) return;
      client.off('readable', read);
      known();
      const path = this.#sockets.get(keyHash(line.toString('latin1', 0, KEY_CHARACTERS)));
      if (path === undefined || line[KEY_CHARACTERS] !== 10) client.destroy();
      else join(client, path);
    };
    client.on('readable', read);
  }
}

function join(client: tls.TLSSocket, path: string): void {
  const sandbox = net.connect({ path, allowHalfOpen: true });
  sandbox.on('error', () => client.destroy());
  client.once('close', () => sandbox.destroy());
  sandbox.once('close', () => client.destroy());
  client.pipe(sandbox);
  sandbox.pipe(client);
}

function listening(server: net.Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve((server.address() as net.AddressInfo).port);
    });
  });
}
