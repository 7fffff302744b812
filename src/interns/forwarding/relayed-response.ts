/** The stream of another process, passed on byte for byte. If it breaks, the response ends as every response does. */
import type { GatewayError } from '../../base/errors.ts';
import type { Namespace } from '../../base/namespace.ts';
import type { PeerStream, PeerStreamReader } from '../../peers/index.ts';
import { type ChatSink, type ChunkIdentity, DONE, endingText } from '../chat/chunks.ts';
import type { Chunk } from '../chat/schema.ts';
import { internError } from '../errors.ts';

const EVENT_END = '\n\n';
const DATA = 'data: ';
/** In an event, and never in a text, where quotes are escaped. */
const FINISH = '"finish_reason":"';

export class RelayedResponse implements PeerStreamReader {
  readonly #namespace: Namespace;
  readonly #sink: ChatSink;
  readonly #sessionId: string;
  readonly #begun = Promise.withResolvers<void>();
  /** The beginning of an event. */
  #rest = '';
  #identity: ChunkIdentity | undefined;
  #hasFinished = false;
  #isDone = false;

  constructor({ namespace }: { namespace: Namespace }, sink: ChatSink, sessionId: string) {
    this.#namespace = namespace;
    this.#sink = sink;
    this.#sessionId = sessionId;
  }

  /** Resolves once the response has begun. @throws GatewayError if it does not */
  relay(stream: PeerStream): Promise<void> {
    this.#sink.onDrain(() => stream.resume());
    stream.read(this);
    return this.#begun.promise;
  }

  data(text: string): boolean {
    const arrived = this.#rest + text;
    const end = arrived.lastIndexOf(EVENT_END) + EVENT_END.length;
    if (end < EVENT_END.length) {
      this.#rest = arrived;
      return true;
    }
    this.#rest = arrived.slice(end);
    return this.#pass(arrived.slice(0, end));
  }

  over(): void {
    if (this.#identity === undefined) {
      this.#begun.reject(severed());
      return;
    }
    if (!this.#isDone) {
      const error = this.#hasFinished ? null : severed();
      this.#sink.write(endingText(this.#identity, this.#namespace, error, this.#sessionId));
    }
    this.#sink.end();
  }

  /** @param events whole ones */
  #pass(events: string): boolean {
    if (this.#identity === undefined) {
      this.#identity = identityOf(events);
      this.#sink.open();
      this.#begun.resolve();
    }
    this.#hasFinished ||= events.includes(FINISH);
    this.#isDone = events.endsWith(DONE);
    return this.#sink.write(events);
  }
}

export function severed(): GatewayError {
  return internError('stream_severed', 'The connection to the process that runs the intern broke.');
}

/** The first event is the chunk with the role. */
function identityOf(events: string): ChunkIdentity {
  const { id, created } = JSON.parse(events.slice(DATA.length, events.indexOf(EVENT_END))) as Chunk;
  return { id, created };
}
