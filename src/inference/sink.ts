import type { WholeBody } from '../formats/single/index.ts';
import type { Generation } from '../spend/index.ts';

/** Where an answer goes: an HTTP response, or a batch's result. Nothing below `operations.ts` knows which. */
export interface Sink {
  /** The whole answer at once, an error's too. */
  reply(status: number, headers: Record<string, string>, body: WholeBody): void;
  /** Begins an event stream with status 200; its head goes out with the first text. */
  open(headers: Record<string, string>): void;
  /** Sends text of the stream; false when the reader is slow: stop until `onDrain`. */
  write(text: string): boolean;
  /** Ends the stream cleanly. */
  end(): void;
  /** Called each time that the reader has caught up. Set once. */
  onDrain(run: () => void): void;
  /** Called at most once, when the reader is gone before the end. Set once. */
  onClose(run: () => void): void;
  /** The request's row, before the last of the answer. Absent: nobody wants it. */
  entered?(row: Generation): void;
  readonly closed: boolean;
}
