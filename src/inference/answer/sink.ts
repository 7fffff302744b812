import type { TextEncoding } from '../../base/byte-text.ts';
import type { WholeBody } from '../../formats/direct/index.ts';
import type { Generation } from '../../spend/index.ts';
import type { Metered } from '../accounting/meter.ts';

/** The destination of an answer. Only `operations/` knows that it is an HTTP response. */
export interface Sink {
  /** Sends a whole response, or an error. */
  reply(status: number, headers: Record<string, string>, body: WholeBody, encoding?: TextEncoding): void;
  /** Begins a stream with status 200 (events, unless a header says otherwise). Its headers are sent with the first text. */
  open(headers: Record<string, string>): void;
  /** Sends text of the stream. Returns false when the reader is slow: then wait for `onDrain`. */
  write(text: string, encoding?: TextEncoding): boolean;
  /** Byte text may be written (`base/byte-text.ts`). Absent: text only. */
  readonly takesBytes?: boolean;
  /** Ends the stream cleanly. */
  end(): void;
  /** Breaks off a stream of bytes, so that its reader cannot mistake it for complete. Absent: byte streams are not supported. */
  cut?(): void;
  /** Called each time the reader has caught up. Set once. */
  onDrain(run: () => void): void;
  /** Called at most once, when the reader disconnects before the end. Set once. */
  onClose(run: () => void): void;
  /** Receives the request's row, and what was metered if anything was, before the last of the answer is sent. Optional. */
  entered?(row: Generation, metered?: Metered): void;
  readonly closed: boolean;
}
