/** The proxy as one sandbox sees it: a socket that leads to the hosts that it may reach. */
import { chmodSync, rmSync } from 'node:fs';
import http from 'node:http';
import type net from 'node:net';
import type { Duplex } from 'node:stream';
import { Allowance } from '../base/allowance.ts';
import { AllowList, type Destination, readAuthority } from './destination.ts';
import { MOST_HEAD_BYTES, type ProxyContext, type Report, type SharedContext } from './forward/context.ts';
import { forwardToGateway } from './forward/gateway.ts';
import { InterceptedHost, refuseUnreadable } from './forward/intercept.ts';
import { forwardPlain, plainDestination } from './forward/plain.ts';
import { refuse, refuseOn } from './forward/respond.ts';
import { tunnel } from './forward/tunnel.ts';
import { reach } from './forward/upstream.ts';
import { asRefusal, Refusal } from './refusal.ts';
import { checkSecrets } from './secret.ts';
import type { GatewaySettings, ModelCall, SandboxSettings } from './settings.ts';
import { Release, SecretTexts } from './text/release.ts';
import type { Authority } from './trust/authority.ts';
import { LeafIssuer } from './trust/leaf-issuer.ts';

const MOST_CONNECTIONS = 256;
/** Memory for bodies that are held as a whole. Beyond it they are streamed, without their length. */
const HELD_BYTES = 8 * 1024 * 1024;
const MOST_DIALS = 32;
const MOST_HOST_CONNECTIONS = 2 * MOST_CONNECTIONS;
/** Intercepted hosts whose certificates and connections are kept. */
const MOST_HOSTS = 64;
/** A certificate is replaced this long before it expires. */
const RENEWAL_MS = 3_600_000;

export class Sandbox {
  readonly #context: ProxyContext;
  readonly #report: Report;
  readonly #called: (call: ModelCall) => void;
  readonly #server: http.Server;
  readonly #hosts = new Map<string, InterceptedHost>();
  readonly #sockets = new Set<Duplex>();
  #texts!: SecretTexts;
  #domains!: AllowList;
  #authority!: Authority;
  #gateway: GatewaySettings | undefined;
  #issuer!: LeafIssuer;

  /** @throws Error if the settings are malformed */
  constructor(settings: SandboxSettings, context: SharedContext, report: Report, called: (call: ModelCall) => void) {
    const connections = new Allowance(MOST_HOST_CONNECTIONS);
    this.#context = { ...context, bodies: new Allowance(HELD_BYTES), dials: new Allowance(MOST_DIALS), connections };
    this.#report = report;
    this.#called = called;
    this.update(settings);
    this.#server = http.createServer({ maxHeaderSize: MOST_HEAD_BYTES, keepAliveTimeout: 60_000 });
    this.#server.maxConnections = 2 * MOST_CONNECTIONS;
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('connect', (request, socket, first) => void this.#connect(request, socket as net.Socket, first));
    this.#server.on('request', (request, response) => void this.#plain(request, response));
    this.#server.on('clientError', refuseUnreadable);
  }

  /** New secrets and rules, also for connections that are open. @throws Error if they are malformed */
  update({ secrets, domains, withinDomains, ports, authority, gateway }: SandboxSettings): void {
    checkSecrets(secrets);
    this.#gateway = gateway;
    const within = withinDomains && new AllowList(withinDomains, ports);
    this.#domains = new AllowList(domains, ports, within);
    this.#texts = new SecretTexts(secrets);
    if (this.#authority?.certificate === authority.certificate) return;
    this.#issuer = new LeafIssuer(authority, this.#context.clock);
    this.#authority = authority;
    this.#forgetHosts();
  }

  /** @param path of the socket; a socket that a dead process left there is replaced */
  async listen(path: string, mode: number): Promise<void> {
    rmSync(path, { force: true });
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(path, resolve);
    });
    chmodSync(path, mode);
  }

  /** Ends all connections. */
  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#forgetHosts();
  }

  async #connect(request: http.IncomingMessage, client: net.Socket, first: Buffer): Promise<void> {
    client.on('error', () => client.destroy());
    let destination: Destination | undefined;
    try {
      this.#checkBusy();
      destination = readAuthority(request.url ?? '');
      new Release(this.#texts, destination.host, false).forbid(`${request.url} ${request.rawHeaders.join(' ')}`);
      this.#domains.check(destination);
      if (this.#texts.isBound(destination.host)) await this.#intercept(destination, client, first);
      else await this.#tunnel(destination, client, first);
    } catch (error) {
      const refusal = asRefusal(error, destination?.host ?? 'the host');
      this.#report(refusal, destination);
      refuseOn(client, refusal);
    }
  }

  async #intercept(destination: Destination, client: net.Socket, first: Buffer): Promise<void> {
    const host = this.#hostOf(destination);
    const offersHttp2 = await host.verify();
    if (client.destroyed) return;
    accepted(client, first);
    host.accept(client, offersHttp2);
  }

  async #tunnel(destination: Destination, client: net.Socket, first: Buffer): Promise<void> {
    const upstream = await reach(destination, this.#context);
    if (client.destroyed) return void upstream.destroy();
    accepted(client, first);
    const refused = (refusal: Refusal) => this.#report(refusal, destination);
    tunnel({ client, upstream, clock: this.#context.clock, texts: this.#texts, refused });
  }

  async #plain(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    request.on('error', () => {});
    response.on('error', () => {});
    let destination: Destination | undefined;
    try {
      this.#checkBusy();
      if (this.#gateway !== undefined && request.url?.startsWith('/')) {
        await forwardToGateway(this.#gateway, request, response, this.#called);
        return;
      }
      const target = plainDestination(request.url ?? '');
      ({ destination } = target);
      const parts = { texts: this.#texts, domains: this.#domains, context: this.#context };
      await forwardPlain(parts, target, request, response);
    } catch (error) {
      const refusal = asRefusal(error, destination?.host ?? 'the host');
      if (!response.destroyed || refusal.secret !== undefined) this.#report(refusal, destination);
      refuse(refusal, request, response);
    }
  }

  #checkBusy(): void {
    if (this.#sockets.size <= MOST_CONNECTIONS) return;
    throw new Refusal('busy', `This sandbox has more than ${MOST_CONNECTIONS} connections.`);
  }

  #hostOf(destination: Destination): InterceptedHost {
    const key = `${destination.host}:${destination.port}`;
    let host = this.#hosts.get(key);
    // The oldest entry is the least recently used.
    this.#hosts.delete(key);
    if (host === undefined || host.expiresAt - this.#context.clock.now() < RENEWAL_MS) {
      const parts = { destination, context: this.#context, report: this.#report, texts: () => this.#texts };
      host = new InterceptedHost(parts, this.#issuer);
    }
    this.#hosts.set(key, host);
    for (const [oldest] of this.#hosts) {
      if (this.#hosts.size <= MOST_HOSTS) break;
      this.#hosts.delete(oldest);
    }
    return host;
  }

  #forgetHosts(): void {
    for (const host of this.#hosts.values()) host.close();
    this.#hosts.clear();
  }
}

/** Answers CONNECT: the connection is now a tunnel to the host. @param first bytes that followed its request */
function accepted(client: net.Socket, first: Buffer): void {
  client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
  if (first.length > 0) client.unshift(first);
}
