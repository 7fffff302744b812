/** The body of an HTTP/1.1 message as it arrives. Most are small and arrive whole, so a stream is made only where one is read. */
import { Readable } from 'node:stream';
import { GatewayRequest } from '../../http/message.ts';
import type { ServerRequest } from './respond.ts';
import type { Body } from './send.ts';

/** Where it comes from. */
interface Source {
  /** More is wanted. */
  resume(): void;
  /** The rest is not wanted. */
  drop(): void;
}

/** The body of a request, which is read without Node's stream if its server allows it. */
export function bodyOf(request: ServerRequest): Body {
  if (!(request instanceof GatewayRequest)) return { whole: undefined, stream: request };
  const body = new ReceivedBody({ resume: () => request.more(), drop: () => request.destroy() });
  request.readInto({
    receive: (chunk) => {
      body.add(chunk);
      return !body.holds;
    },
    received: () => body.end(),
  });
  request.once('close', () => body.cut());
  return body;
}

export class ReceivedBody implements Body {
  readonly #source: Source;
  readonly #chunks: Buffer[] = [];
  #state: 'open' | 'complete' | 'cut' = 'open';
  #stream: Readable | undefined;
  #isFull = false;

  constructor(source: Source) {
    this.#source = source;
  }

  /** All of it, if all has arrived and no stream was made. */
  get whole(): Buffer | undefined {
    if (this.#state !== 'complete' || this.#stream !== undefined) return undefined;
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
  }

  /** All of it, from its beginning. */
  get stream(): Readable {
    this.#stream ??= this.#createStream();
    return this.#stream;
  }

  /** Whether it should not grow until more is wanted. */
  get holds(): boolean {
    return this.#state === 'open' && (this.#stream === undefined || this.#isFull);
  }

  add(chunk: Buffer): void {
    if (this.#stream === undefined) this.#chunks.push(chunk);
    else this.#isFull = !this.#stream.push(chunk);
  }

  end(): void {
    this.#state = 'complete';
    this.#stream?.push(null);
  }

  /** Nothing more arrives. */
  cut(): void {
    if (this.#state !== 'open') return;
    this.#state = 'cut';
    this.#stream?.destroy(new Error('cut'));
  }

  #createStream(): Readable {
    const stream = new Readable({
      read: () => {
        this.#isFull = false;
        if (this.#state === 'open') this.#source.resume();
      },
      destroy: (error, done) => {
        if (this.#state === 'open') this.#source.drop();
        done(error);
      },
    });
    // Its reader may have left, and an error without a listener would end the process.
    stream.on('error', () => {});
    for (const chunk of this.#chunks) stream.push(chunk);
    if (this.#state === 'complete') stream.push(null);
    if (this.#state === 'cut') stream.destroy(new Error('cut'));
    return stream;
  }
}
