/** Sends a request to a host, in HTTP/1.1 or HTTP/2, behind one interface. */
import http from 'node:http';
import http2 from 'node:http2';
import type { Readable } from 'node:stream';
import type { Destination } from '../destination.ts';
import { Refusal } from '../refusal.ts';
import type { Sink } from './bodies.ts';
import { asObject, type Pair, pairsOf, type RequestHead } from './heads.ts';
import type { Upstream } from './upstream.ts';

/** The length of a request's body: bytes, unknown, or none. */
export type BodyLength = number | 'unknown' | 'none';

export interface Answer {
  status: number;
  /** Empty in HTTP/2. */
  statusText: string;
  pairs: Pair[];
  body: Readable;
  /** Known after the body. */
  trailers(): Pair[];
}

export interface Sent {
  answer: Promise<Answer>;
  body: Sink;
  /** After the last byte of the body. */
  end(trailers: readonly Pair[]): void;
  abort(): void;
}

/** What both versions need. */
export interface Outgoing {
  head: RequestHead;
  destination: Destination;
  length: BodyLength;
}

export function authorityOf({ host, port }: Destination, defaultPort: number): string {
  return port === defaultPort ? host : `${host}:${port}`;
}

/** @param defaultPort the port that the Host header leaves out */
export function sendHttp1({ head, destination, length }: Outgoing, agent: http.Agent, defaultPort = 443): Sent {
  const headers: Pair[] = [['host', authorityOf(destination, defaultPort)], ...head.pairs, ...framing(length)];
  const options = { agent, method: head.method, path: head.path, headers: headers.flat(), setDefaultHeaders: false };
  let isAborted = false;
  let request = http.request(options);
  const answer = new Promise<Answer>((resolve, reject) => {
    const watch = () => {
      request.once('response', (response) => resolve(answerOf(response)));
      request.on('error', (error) => {
        // The host closed an idle connection at the moment when the request was sent.
        if (!request.reusedSocket || length !== 'none' || isAborted) return reject(broken(error, destination));
        request = http.request(options);
        watch();
        request.end();
      });
    };
    watch();
  });
  answer.catch(() => {});
  return {
    answer,
    body: request,
    end: (trailers) => {
      if (trailers.length > 0) request.addTrailers(trailers);
      request.end();
    },
    abort: () => {
      isAborted = true;
      request.destroy();
    },
  };
}

function framing(length: BodyLength): Pair[] {
  if (length === 'none') return [];
  return length === 'unknown' ? [['transfer-encoding', 'chunked']] : [['content-length', String(length)]];
}

function answerOf(response: http.IncomingMessage): Answer {
  return {
    status: response.statusCode ?? 502,
    statusText: response.statusMessage ?? '',
    pairs: pairsOf(response.rawHeaders),
    body: response,
    trailers: () => pairsOf(response.rawTrailers),
  };
}

/** What libraries say about a failure may contain parts of the request. */
function broken(error: unknown, { host }: Destination): Refusal {
  return error instanceof Refusal ? error : new Refusal('upstream', `${host} broke the connection before it answered.`);
}

/** @param hasTrailers whether the request announces trailers */
export async function sendHttp2(outgoing: Outgoing, upstream: Upstream, hasTrailers: boolean): Promise<Sent> {
  const { head, destination, length } = outgoing;
  const headers = {
    ':method': head.method,
    ':scheme': 'https',
    ':authority': authorityOf(destination, 443),
    ':path': head.path,
    ...asObject(head.pairs),
    ...(typeof length === 'number' && { 'content-length': String(length) }),
  };
  const stream = await upstream.stream(headers, { endStream: length === 'none', waitForTrailers: hasTrailers });
  let sentTrailers: readonly Pair[] = [];
  let received: Pair[] = [];
  stream.on('wantTrailers', () => stream.sendTrailers(asObject(sentTrailers)));
  stream.on('trailers', (_headers, _flags, raw: string[]) => {
    received = pairsOf(raw);
  });
  const answer = new Promise<Answer>((resolve, reject) => {
    let isAnswered = false;
    stream.once('response', (response, _flags, raw: string[]) => {
      isAnswered = true;
      const pairs = pairsOf(raw).filter(([name]) => !name.startsWith(':'));
      resolve({ status: response[':status'] ?? 502, statusText: '', pairs, body: stream, trailers: () => received });
    });
    stream.on('error', (error) => reject(broken(error, destination)));
    stream.once('close', () => {
      if (!isAnswered) reject(broken(undefined, destination));
    });
  });
  answer.catch(() => {});
  return {
    answer,
    body: stream,
    end: (trailers) => {
      sentTrailers = trailers;
      stream.end();
    },
    abort: () => stream.close(http2.constants.NGHTTP2_CANCEL),
  };
}
