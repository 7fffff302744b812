/** How a streamed answer is cut into events. Server-sent events unless the kind of provider has another framing. */
import type { EventHandler, UnfinishedEvent } from '../http/sse.ts';

/** What `EventReader` (http/sse.ts) is, and what a reader of another framing must be: it reads chunks that are cut anywhere. */
export interface FrameReader {
  /**
   * Tells every event that this chunk completes: a name, '' where there is none, and its text. Keeps no reference to the
   * chunk. Throws for damaged framing and for an event past the limit; the message is shown to clients.
   */
  push(chunk: Buffer): void;
  /** The bytes are over: the event that was not ended but can be read all the same, else null. */
  end(): UnfinishedEvent | null;
  /** No further event is told. May be called by the handler. */
  stop(): void;
  /** Text outside of all events that may tell an error; '' for framings that have no outside. */
  readonly stray: string;
}

/** Makes the reader of one answer. `limitBytes` is the most that one event may hold. */
export type Framing = (onEvent: EventHandler, limitBytes: number) => FrameReader;
