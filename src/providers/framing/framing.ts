/** How a streamed reply is split into events. Server-sent events, unless the provider kind defines another framing. */
import type { EventHandler, UnfinishedEvent } from '../../http/sse.ts';

/** Implemented by `EventReader` (http/sse.ts) and by readers of other framings. Chunks may be cut anywhere. */
export interface FrameReader {
  /**
   * Emits every event that this chunk completes: its name ('' if none) and its text. Keeps no reference to the chunk.
   * Throws for damaged framing and for an event over the limit; the error message is shown to clients.
   */
  push(chunk: Buffer): void;
  /** End of the bytes: returns an unterminated event that is still readable, else null. */
  end(): UnfinishedEvent | null;
  /** Stops emitting events. The handler may call it. */
  stop(): void;
  /** Text outside of events that may describe an error; '' for framings without such text. */
  readonly stray: string;
}

/** Creates the reader of one reply. `limitBytes` limits a single event. */
export type Framing = (onEvent: EventHandler, limitBytes: number) => FrameReader;
