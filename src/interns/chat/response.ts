/** One response of the chat: a reader of at most one run. */
import type { Clock } from '../../base/clock.ts';
import type { Namespace } from '../../base/namespace.ts';
import { internError } from '../errors.ts';
import { questionArguments } from './answers.ts';
import { type ChatSink, ChunkWriter } from './chunks.ts';
import type { Run, RunOutput, RunReader } from './run.ts';

interface ResponseParts {
  clock: Clock;
  namespace: Namespace;
}

/** Of a request. */
export const REQUEST_MS = 300_000;

export class ChatResponse implements RunReader {
  readonly #parts: ResponseParts;
  readonly #sink: ChatSink;
  readonly #late = Promise.withResolvers<never>();
  readonly #timer: { cancel(): void };
  #run: Run | undefined;
  #sessionId = '';
  #writer: ChunkWriter | undefined;
  #isOver = false;

  constructor(parts: ResponseParts, sink: ChatSink) {
    this.#parts = parts;
    this.#sink = sink;
    this.#late.promise.catch(() => {});
    this.#timer = parts.clock.timer(REQUEST_MS, () => this.#expire());
    sink.onClose(() => this.#left());
    sink.onDrain(() => this.#run?.drained(this));
  }

  /** The client has disconnected, or has its error. */
  get isOver(): boolean {
    return this.#isOver || this.#sink.closed;
  }

  /** `work` that precedes the stream. @throws GatewayError 408 */
  inTime<T>(work: Promise<T>): Promise<T> {
    work.catch(() => {});
    return Promise.race([work, this.#late.promise]);
  }

  dispose(): void {
    this.#isOver = true;
    this.#timer.cancel();
    this.#writer?.stop();
  }

  read(run: Run, sessionId: string): void {
    this.#attached(run, sessionId);
    run.attach(this);
  }

  /** @throws GatewayError */
  answer(run: Run, sessionId: string, { callId, text }: { callId: string; text: string }): void {
    // The stream opens with the first output; a refused answer has none.
    this.#run = run;
    this.#sessionId = sessionId;
    run.answer(callId, text, this);
    this.#attached(run, sessionId);
  }

  take(output: RunOutput): boolean {
    const writer = this.#opened();
    const { model } = output;
    if (output.type === 'text') return writer.text(output.part, output.text, model);
    this.dispose();
    const sessionId = this.#sessionId;
    if (output.type === 'question') {
      writer.question(output.id, questionArguments(output.question), model, sessionId);
      return true;
    }
    const { error, usage } = output.ending;
    if (error === null) writer.complete(model);
    else writer.failed(error);
    void usage.then((used) => writer.close(error === null ? model : null, sessionId, used));
    return true;
  }

  #attached(run: Run, sessionId: string): void {
    this.#run = run;
    this.#sessionId = sessionId;
    if (!this.#isOver) this.#opened();
  }

  #opened(): ChunkWriter {
    const { namespace, clock } = this.#parts;
    this.#writer ??= new ChunkWriter(this.#sink, namespace, clock);
    return this.#writer;
  }

  #expire(): void {
    const message = `The intern did not finish within ${REQUEST_MS / 1_000} s.`;
    if (this.#writer === undefined) {
      this.#late.reject(internError('timeout', message));
      return;
    }
    this.dispose();
    this.#run?.leave(this, 'timeout');
    this.#writer.failed(internError('timeout', message, { status: 504 }));
    this.#writer.close(null, this.#sessionId, null);
  }

  #left(): void {
    if (this.#isOver) return;
    this.dispose();
    this.#run?.leave(this, 'client_closed_request');
  }
}
