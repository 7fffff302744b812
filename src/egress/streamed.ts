/** The body of a response as it arrives, up to a limit of bytes. The connection waits for a slow reader. */
import type { Dispatcher } from 'undici';
import { EgressError } from './fault.ts';

/** A response whose body is read as it arrives. */
export interface EgressStream {
  readonly status: number;
  /** Names in lower case; of repeated headers, the first value. */
  readonly headers: Readonly<Record<string, string>>;
  /** Fails with an EgressError. To cancel it closes the connection. */
  readonly body: ReadableStream<Uint8Array>;
}

/** The head of a response as it is passed on. */
export type Head = Pick<EgressStream, 'status' | 'headers'>;

export class Streamed implements Dispatcher.DispatchHandler {
  readonly #maxBytes: number;
  readonly #opened: (stream: EgressStream) => void;
  readonly #ended: (error?: Error) => void;
  readonly #body: ReadableStream<Uint8Array>;
  #writer!: ReadableStreamDefaultController<Uint8Array>;
  #connection: Dispatcher.DispatchController | undefined;
  #size = 0;
  #over = false;

  /** @param ended called once, when nothing more is read */
  constructor(maxBytes: number, opened: (stream: EgressStream) => void, ended: (error?: Error) => void) {
    this.#maxBytes = maxBytes;
    this.#opened = opened;
    this.#ended = ended;
    this.#body = new ReadableStream<Uint8Array>({
      start: (writer) => {
        this.#writer = writer;
      },
      pull: () => this.#connection?.resume(),
      cancel: () => this.#end(),
    });
  }

  /** Its presence marks a handler of undici's current interface. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#connection = controller;
  }

  onResponseStart(_controller: unknown, status: number, headers: Record<string, string | string[] | undefined>): void {
    if (status < 200) return;
    const head = headOf(status, headers);
    if (!/^(?:identity)?$/i.test(head.headers['content-encoding'] ?? '')) this.fail(compressed());
    else this.#opened({ ...head, body: this.#body });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // undici delivers an empty chunk with each `resume`: paused after it, no other would ever follow.
    if (this.#over || chunk.length === 0) return;
    this.#size += chunk.length;
    if (this.#size > this.#maxBytes) {
      this.fail(new EgressError('size', `is larger than the limit of ${this.#maxBytes} bytes`));
      return;
    }
    this.#writer.enqueue(Uint8Array.from(chunk));
    if ((this.#writer.desiredSize ?? 0) <= 0) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#over) return;
    this.#writer.close();
    this.#end();
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.fail(error instanceof EgressError ? error : new EgressError('network', 'could not be fetched'));
  }

  fail(error: Error): void {
    if (this.#over) return;
    this.#writer.error(error);
    this.#end(error);
  }

  #end(error?: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#ended(error);
  }
}

export function headOf(status: number, headers: Record<string, string | string[] | undefined>): Head {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const first = Array.isArray(value) ? value[0] : value;
    if (first !== undefined) kept[name.toLowerCase()] = first;
  }
  return { status, headers: kept };
}

export function compressed(): EgressError {
  return new EgressError('network', 'sent a compressed response, which is not supported');
}
