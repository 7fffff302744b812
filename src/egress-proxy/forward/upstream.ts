/** Verified connections to one host for one sandbox. */
import http2 from 'node:http2';
import type net from 'node:net';
import tls from 'node:tls';
import { dial, EgressError } from '../../egress/index.ts';
import type { Destination } from '../destination.ts';
import { Refusal } from '../refusal.ts';
import { CONNECT_MS, MOST_HEAD_BYTES, type ProxyContext, withDeadline } from './context.ts';
import { HostConnections } from './host-connections.ts';

/** How long the protocols that a host offers are remembered. Each new connection is verified for itself. */
const REMEMBERED_MS = 5 * 60_000;
const IDLE_CONNECTION_MS = 30_000;
const HTTP2 = ['h2', 'http/1.1'];
const HTTP1 = ['http/1.1'];

/** A TCP connection to a checked address. @throws Refusal */
export async function reach({ host, port }: Destination, context: ProxyContext): Promise<net.Socket> {
  if (!context.connections.take(1)) throw new Refusal('busy', 'This sandbox has too many connections to hosts.');
  if (!context.dials.take(1)) {
    context.connections.release(1);
    throw new Refusal('busy', 'This sandbox is opening too many connections at once.');
  }
  try {
    const socket = await withDeadline(context.clock, CONNECT_MS, (signal) =>
      dial({ host, port }, context.checks, signal),
    );
    if (socket.closed) context.connections.release(1);
    else socket.once('close', () => context.connections.release(1));
    return socket;
  } catch (error) {
    context.connections.release(1);
    if (error instanceof EgressError && error.fault === 'address') {
      throw new Refusal('address', `${host} points to an address that is not public.`);
    }
    const problem = error instanceof EgressError ? error.message : 'could not be reached';
    throw new Refusal('upstream', `${host} ${problem}.`);
  } finally {
    context.dials.release(1);
  }
}

export class Upstream {
  readonly #destination: Destination;
  readonly #context: ProxyContext;
  /** For HTTP/1.1. */
  readonly connections: HostConnections;
  #known: { offersHttp2: boolean; until: number } | undefined;
  /** The connection of the first verification, for the first request. */
  #spare: tls.TLSSocket | undefined;
  #session: Promise<http2.ClientHttp2Session> | undefined;
  /** Requests of the session that have not ended. */
  #streams = 0;
  /** How many there were. */
  #used = 0;

  constructor(destination: Destination, context: ProxyContext) {
    this.#destination = destination;
    this.#context = context;
    this.connections = new HostConnections(() => this.open(), context.clock);
  }

  /** A connection for HTTP/1.1. @throws Refusal */
  async open(): Promise<tls.TLSSocket> {
    return this.#takeSpare('http/1.1') ?? (await this.#connect(HTTP1));
  }

  /** Verifies the host, unless that was done a short while ago. @throws Refusal */
  async offersHttp2(): Promise<boolean> {
    const now = this.#context.clock.monotonic();
    if (this.#known === undefined || this.#known.until < now) {
      const socket = await this.#connect(HTTP2);
      this.#spare?.destroy();
      this.#spare = socket;
      const timer = this.#context.clock.timer(IDLE_CONNECTION_MS, () => {
        if (this.#spare === socket) socket.destroy();
      });
      socket.once('close', () => {
        timer.cancel();
        if (this.#spare === socket) this.#spare = undefined;
      });
      this.#known = { offersHttp2: socket.alpnProtocol === 'h2', until: now + REMEMBERED_MS };
    }
    return this.#known.offersHttp2;
  }

  /** A request over the session that all share. @throws Refusal */
  async stream(
    headers: http2.OutgoingHttpHeaders,
    options: http2.ClientSessionRequestOptions,
  ): Promise<http2.ClientHttp2Stream> {
    let session = await this.#currentSession();
    if (session.closed || session.destroyed) {
      this.#session = undefined;
      session = await this.#currentSession();
    }
    const stream = session.request(headers, options);
    this.#streams += 1;
    this.#used += 1;
    const used = this.#used;
    stream.once('close', () => {
      this.#streams -= 1;
      if (this.#streams > 0) return;
      this.#context.clock.timer(IDLE_CONNECTION_MS, () => {
        if (this.#streams === 0 && this.#used === used) session.close();
      });
    });
    return stream;
  }

  /** Ends all connections. */
  close(): void {
    this.#spare?.destroy();
    this.connections.close();
    void this.#session?.then(
      (session) => session.destroy(),
      () => {},
    );
  }

  #currentSession(): Promise<http2.ClientHttp2Session> {
    if (this.#session !== undefined) return this.#session;
    const opening = this.#openSession();
    const drop = () => {
      if (this.#session === opening) this.#session = undefined;
    };
    this.#session = opening;
    opening.then((session) => void session.once('close', drop).once('goaway', drop).on('error', drop), drop);
    return opening;
  }

  async #openSession(): Promise<http2.ClientHttp2Session> {
    const socket = this.#takeSpare('h2') ?? (await this.#connect(HTTP2));
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy();
      this.#known = undefined;
      throw new Refusal('upstream', `${this.#destination.host} no longer offers HTTP/2.`);
    }
    const session = http2.connect(originOf(this.#destination), {
      createConnection: () => socket,
      settings: { enablePush: false, maxHeaderListSize: MOST_HEAD_BYTES },
      // Its types do not have it.
      ...{ strictSingleValueFields: false },
    });
    return session;
  }

  #takeSpare(protocol: string): tls.TLSSocket | undefined {
    const socket = this.#spare;
    this.#spare = undefined;
    if (socket === undefined || socket.destroyed) return undefined;
    const isHttp2 = socket.alpnProtocol === 'h2';
    if (isHttp2 !== (protocol === 'h2')) {
      socket.destroy();
      return undefined;
    }
    return socket;
  }

  async #connect(ALPNProtocols: string[]): Promise<tls.TLSSocket> {
    const { host } = this.#destination;
    const socket = await reach(this.#destination, this.#context);
    const secure = tls.connect({ socket, servername: host, ALPNProtocols, secureContext: this.#context.roots });
    const handshake = (signal: AbortSignal) =>
      new Promise<tls.TLSSocket>((resolve, reject) => {
        signal.addEventListener('abort', () => secure.destroy(signal.reason as Error));
        secure.once('secureConnect', () => resolve(secure));
        secure.on('error', reject);
        secure.once('close', () => reject(new Error('closed')));
      });
    try {
      return await withDeadline(this.#context.clock, CONNECT_MS, handshake);
    } catch (error) {
      secure.destroy();
      throw unverified(host, error);
    }
  }
}

/** Codes of OpenSSL and Node for a certificate that does not prove the name. */
const CERTIFICATE = /CERT|SIGNED|ISSUER|CRL|PURPOSE|PATH_LENGTH|HOSTNAME/;

function unverified(host: string, error: unknown): Refusal {
  const code = String((error as NodeJS.ErrnoException | undefined)?.code ?? '');
  if (CERTIFICATE.test(code) && !code.startsWith('ERR_SSL')) {
    return new Refusal(
      'certificate',
      `The certificate of ${host} could not be verified (${code}), so nothing was sent.`,
    );
  }
  return new Refusal('upstream', `The TLS handshake with ${host} failed${/^\w+$/.test(code) ? ` (${code})` : ''}.`);
}

function originOf({ host, port }: Destination): string {
  return `https://${host}${port === 443 ? '' : `:${port}`}`;
}
