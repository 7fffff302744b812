/** WebSockets: the request that opens one gets its secrets; its messages pass as they are, as long as they show no value. */
import http from 'node:http';
import type net from 'node:net';
import type { Duplex } from 'node:stream';
import type { Allowance } from '../../base/allowance.ts';
import type { Clock } from '../../base/clock.ts';
import type { Destination } from '../destination.ts';
import { Refusal } from '../refusal.ts';
import type { Release, SecretTexts } from '../text/release.ts';
import { Watcher } from '../text/watcher.ts';
import { MOST_HEAD_BYTES, type Report } from './context.ts';
import { flat, headerOf, pairsOf, releasedHead, scrubbedPairs } from './heads.ts';
import { endWhenIdle } from './idle.ts';
import { respond } from './respond.ts';
import { authorityOf } from './send.ts';

interface Upgrade {
  destination: Destination;
  release: Release;
  /** A connection to the host. @throws Refusal */
  open(): Promise<net.Socket>;
  allowance: Allowance;
  report: Report;
  clock: Clock;
}

/** @throws Refusal before anything is written */
export async function upgrade(parts: Upgrade, request: http.IncomingMessage, client: Duplex, first: Buffer) {
  const { destination, release } = parts;
  const pairs = pairsOf(request.rawHeaders).filter(([, , name]) => name !== 'sec-websocket-extensions');
  if (headerOf(pairs, 'upgrade')?.toLowerCase() !== 'websocket') {
    throw new Refusal('bad_request', 'Only WebSockets can take a connection over.');
  }
  const head = releasedHead({ method: request.method ?? 'GET', path: request.url ?? '/', pairs }, release);
  const headers = [
    ...['host', authorityOf(destination, 443), 'connection', 'Upgrade', 'upgrade', 'websocket'],
    ...flat(head.pairs),
  ];
  const outgoing = http.request({
    ...{ method: head.method, path: head.path, headers, setDefaultHeaders: false, maxHeaderSize: MOST_HEAD_BYTES },
    createConnection: (_options, done) => {
      parts.open().then(
        (socket) => done(null, socket),
        (error: Error) => done(error, undefined as unknown as Duplex),
      );
      return undefined;
    },
  });
  client.once('close', () => outgoing.destroy());
  await new Promise<void>((resolve, reject) => {
    outgoing.once('upgrade', (answer, upstream, early) => {
      open(answer, release.texts, client, upstream);
      join(parts, { client, upstream, first, early });
      resolve();
    });
    outgoing.once('response', (answer) => {
      const response = new http.ServerResponse(request);
      response.shouldKeepAlive = false;
      response.assignSocket(client as net.Socket);
      response.once('finish', () => client.end());
      const { statusCode: status = 502, statusMessage: statusText = '' } = answer;
      const passed = {
        status,
        statusText,
        pairs: pairsOf(answer.rawHeaders),
        body: { whole: undefined, stream: answer },
        trailers: () => [],
      };
      respond(passed, request, response, release.texts, parts.allowance).then(resolve, reject);
    });
    outgoing.once('error', (error) =>
      reject(error instanceof Refusal ? error : new Refusal('upstream', `${destination.host} broke the connection.`)),
    );
    outgoing.end();
  });
}

function open(answer: http.IncomingMessage, texts: SecretTexts, client: Duplex, upstream: Duplex): void {
  const lines = scrubbedPairs(pairsOf(answer.rawHeaders), texts).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n${lines.join('')}\r\n`;
  client.write(head, 'latin1');
  upstream.on('error', () => client.destroy());
  client.on('error', () => upstream.destroy());
}

const NOTHING = Buffer.alloc(0);

interface Ends {
  client: Duplex;
  upstream: Duplex;
  first: Buffer;
  early: Buffer;
}

/** Shorter beginnings of a value are passed on at once: they show little, and many messages end with one. */
const MIN_HELD_BYTES = 6;

/**
 * A frame cannot be made longer or shorter, so a value in one ends the connection. What may be the beginning of a value is held
 * until more arrives.
 */
function join({ destination, release, report, clock }: Upgrade, { client, upstream, first, early }: Ends): void {
  const watcher = new Watcher(release.texts.values);
  if (first.length > 0) upstream.write(first);
  client.pipe(upstream);
  let held: Buffer = NOTHING;
  const back = (chunk: Buffer) => {
    if (watcher.sees(chunk) !== undefined) {
      report(new Refusal('secret_returned', 'The value of a secret came back in a WebSocket message.'), destination);
      client.destroy();
      upstream.destroy();
      return;
    }
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const keep = watcher.open < MIN_HELD_BYTES ? 0 : Math.min(watcher.open, bytes.length);
    held = bytes.subarray(bytes.length - keep);
    if (keep < bytes.length && !client.write(bytes.subarray(0, bytes.length - keep))) {
      upstream.pause();
      client.once('drain', () => upstream.resume());
    }
  };
  if (early.length > 0) back(early);
  upstream.on('data', back);
  endWhenIdle(clock, [client, upstream]);
  upstream.once('end', () => client.end(held));
  upstream.once('close', () => client.destroy());
  client.once('close', () => upstream.destroy());
}
