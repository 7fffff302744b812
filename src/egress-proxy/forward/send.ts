/** What is sent to a host and comes back, in HTTP/1.1 (`send-http1.ts`) or HTTP/2. */
import http2 from 'node:http2';
import type { Readable } from 'node:stream';
import type { Destination } from '../destination.ts';
import { Refusal } from '../refusal.ts';
import type { Sink } from './bodies.ts';
import { asObject, type Pair, pairsOf, type RequestHead } from './heads.ts';
import type { Upstream } from './upstream.ts';

/** The length of a request's body: bytes, unknown, or none. */
export type BodyLength = number | 'unknown' | 'none';

/** A body that arrives. Only one of its members is read. */
export interface Body {
  /** All of it, if all is there already. */
  readonly whole: Buffer | undefined;
  readonly stream: Readable;
}

export interface Answer {
  status: number;
  /** Empty in HTTP/2. */
  statusText: string;
  pairs: Pair[];
  body: Body;
  /** Known after the body. */
  trailers(): readonly Pair[];
}

export interface Sent {
  answer: Promise<Answer>;
  body: Sink;
  /** After the last byte of the body, unless the body was ended itself. */
  finish(trailers: readonly Pair[]): void;
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

/** What libraries say about a failure may contain parts of the request. */
export function broken(error: unknown, { host }: Destination): Refusal {
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
  stream.on('wantTrailers', () => {
    try {
      stream.sendTrailers(asObject(sentTrailers));
    } catch (error) {
      stream.destroy(error as Error);
    }
  });
  stream.on('trailers', (_headers, _flags, raw: string[]) => {
    received = pairsOf(raw);
  });
  const answer = new Promise<Answer>((resolve, reject) => {
    let isAnswered = false;
    stream.once('response', (response, _flags, raw: string[]) => {
      isAnswered = true;
      const pairs = pairsOf(raw).filter(([name]) => !name.startsWith(':'));
      resolve({
        status: response[':status'] ?? 502,
        statusText: '',
        pairs,
        body: { whole: undefined, stream },
        trailers: () => received,
      });
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
    finish: (trailers) => {
      sentTrailers = trailers;
      stream.end();
    },
    abort: () => stream.close(http2.constants.NGHTTP2_CANCEL),
  };
}
