/**
 * Parses upstream responses with llhttp, the parser of Node and undici, in strict mode. llhttp alone decides what a
 * response is and where it ends. Results are passed on only after a piece has been parsed, so the reader may do
 * anything to the connection.
 */
import binary from 'undici/lib/llhttp/llhttp-wasm.js';

/** Called in order, for each piece that is read. */
export interface AnswerReader<Headers> {
  /** Once per response; informational ones (1xx) are skipped. @param reason the text after the status, in Latin-1 */
  answerHead(status: number, headers: Headers, reason: string): void;
  /** The reader may keep the chunk. */
  answerData(chunk: Buffer): void;
  /** @param reusable whether another exchange may use the connection @param trailers if they are kept */
  answerEnd(reusable: boolean, trailers: Headers | undefined): void;
  /** The bytes are not valid HTTP; nothing more can be parsed. */
  answerMalformed(): void;
}

/** How a reader wants the headers of its responses. */
export interface HeaderForm<Headers> {
  /** Whether it wants the reason and the trailers. */
  readonly isWhole: boolean;
  create(): Headers;
  /** The name under which a header is kept. Undefined: it is not, and no text is made of its value. */
  keptAs(name: string): string | undefined;
  /** @param value in Latin-1, without spaces before it */
  add(headers: Headers, name: string, value: string): void;
}

interface Llhttp {
  readonly memory: { readonly buffer: ArrayBuffer };
  malloc(bytes: number): number;
  llhttp_alloc(type: number): number;
  llhttp_free(parser: number): void;
  llhttp_execute(parser: number, at: number, length: number): number;
  llhttp_finish(parser: number): number;
}

const OK = 0;
const STOP = -1;
const NO_BODY = 1;
const ANSWERS = 2;
const MAX_HEAD_BYTES = 64 * 1024;

/** Most bytes parsed at once. */
export const PIECE_BYTES = 64 * 1024;

let current: AnswerParser<unknown> | undefined;

const { exports } = new WebAssembly.Instance(new WebAssembly.Module(binary), {
  env: {
    wasm_on_url: () => OK,
    wasm_on_status: (_parser: number, at: number, length: number) => current!.reason(at - area, length),
    wasm_on_message_begin: () => current!.begun(),
    wasm_on_header_field: (_parser: number, at: number, length: number) => current!.name(at - area, length),
    wasm_on_header_value: (_parser: number, at: number, length: number) => current!.value(at - area, length),
    wasm_on_headers_complete: (_parser: number, status: number, upgrade: number, keepAlive: number) =>
      current!.headed(status, upgrade === 1, keepAlive === 1),
    wasm_on_body: (_parser: number, at: number, length: number) => current!.body(at - area, length),
    wasm_on_message_complete: () => current!.completed(),
  },
});
const llhttp = exports as unknown as Llhttp;
/** Input buffer in the parser's own memory. */
const area = llhttp.malloc(PIECE_BYTES);
let areaBytes = new Uint8Array(llhttp.memory.buffer, area, PIECE_BYTES);

/** The responses on one connection, one after another. */
export class AnswerParser<Headers> {
  readonly #reader: AnswerReader<Headers>;
  readonly #form: HeaderForm<Headers>;
  #parser = llhttp.llhttp_alloc(ANSWERS);
  #piece!: Buffer;
  /** Whether a requested response has not ended yet. */
  #awaited = false;
  /** Whether that response ends with its head, whatever it says about a body. */
  #bodiless = false;
  /** Whether its head has arrived. */
  #headed = false;
  #headBytes = 0;
  #name = '';
  /** Undefined before the header's value begins. */
  #value: string | undefined;
  /** The name under which the header is kept; known once its value begins. */
  #keptAs: string | undefined;
  #headers: Headers;
  #trailers: Headers | undefined;
  #reason = '';
  #status = 0;
  #keepAlive = false;
  // Results of the piece being parsed.
  #newHead = false;
  #body: Buffer | undefined;
  #bodyBytes = 0;
  #ended = false;

  constructor(reader: AnswerReader<Headers>, form: HeaderForm<Headers>) {
    this.#reader = reader;
    this.#form = form;
    this.#headers = form.create();
  }

  /** A request is being sent, so a response may arrive. @param bodiless it was HEAD */
  expect(bodiless = false): void {
    this.#awaited = true;
    this.#bodiless = bodiless;
  }

  read(piece: Buffer): void {
    for (let at = 0; at < piece.length && this.#parser !== 0; at += PIECE_BYTES) {
      const part = piece.length <= PIECE_BYTES ? piece : piece.subarray(at, at + PIECE_BYTES);
      // The WebAssembly memory grew, which detaches its old buffer.
      if (areaBytes.length === 0) areaBytes = new Uint8Array(llhttp.memory.buffer, area, PIECE_BYTES);
      areaBytes.set(part);
      this.#piece = part;
      current = this as AnswerParser<unknown>;
      const result = llhttp.llhttp_execute(this.#parser, area, part.length);
      this.#handOn(result === OK);
    }
  }

  /** The upstream closed the connection, which ends a response without a length. */
  finish(): void {
    if (this.#parser === 0) return;
    current = this as AnswerParser<unknown>;
    const fine = llhttp.llhttp_finish(this.#parser) === OK;
    this.#keepAlive = false;
    if (fine) this.#handOn(true);
  }

  /** Releases the parser; nothing is parsed afterwards. Idempotent. */
  free(): void {
    if (this.#parser !== 0) llhttp.llhttp_free(this.#parser);
    this.#parser = 0;
  }

  #handOn(fine: boolean): void {
    if (this.#newHead) {
      this.#newHead = false;
      this.#reader.answerHead(this.#status, this.#headers, this.#reason);
    }
    if (this.#body !== undefined) {
      const isMostlyEmpty = this.#bodyBytes < this.#body.length / 2;
      const filled = this.#body.length === this.#bodyBytes ? this.#body : this.#body.subarray(0, this.#bodyBytes);
      // A copy, so that a reader that keeps a few bytes does not keep the whole piece, which is mostly framing.
      const body = isMostlyEmpty ? Buffer.from(filled) : filled;
      this.#body = undefined;
      this.#bodyBytes = 0;
      this.#reader.answerData(body);
    }
    if (this.#ended) {
      this.#ended = false;
      // Bytes after the end of a response must not become the response to the next request.
      this.#reader.answerEnd(fine && this.#keepAlive, this.#trailers);
    } else if (!fine) this.#reader.answerMalformed();
  }

  // Callbacks of llhttp. Offsets are relative to the piece.

  begun(): number {
    // A response without a request. What came before it in the same piece is still passed on.
    if (!this.#awaited) return STOP;
    this.#headed = false;
    this.#headBytes = 0;
    this.#headers = this.#form.create();
    this.#trailers = undefined;
    this.#reason = '';
    this.#name = '';
    this.#value = undefined;
    return OK;
  }

  reason(at: number, length: number): number {
    if (this.#form.isWhole) this.#reason += this.#piece.toString('latin1', at, at + length);
    return this.#counted(length);
  }

  name(at: number, length: number): number {
    if (this.#value !== undefined) this.#keep();
    if (this.#keeps) this.#name += this.#piece.toString('latin1', at, at + length);
    return this.#counted(length);
  }

  value(at: number, length: number): number {
    if (this.#value === undefined) {
      this.#value = '';
      this.#keptAs = this.#keeps ? this.#form.keptAs(this.#name) : undefined;
    }
    // Most headers are not wanted, and no text is made of their values.
    if (this.#keptAs !== undefined) this.#value += this.#piece.toString('latin1', at, at + length);
    return this.#counted(length);
  }

  headed(status: number, upgrade: boolean, keepAlive: boolean): number {
    if (this.#value !== undefined) this.#keep();
    if (upgrade || status < 100) return STOP;
    this.#headed = true;
    this.#status = status;
    this.#keepAlive = keepAlive;
    if (status < 200) return OK;
    this.#newHead = true;
    return this.#bodiless ? NO_BODY : OK;
  }

  body(at: number, length: number): number {
    // It would become part of the response that follows.
    if (this.#status < 200) return STOP;
    this.#body ??= Buffer.allocUnsafe(this.#piece.length - at);
    this.#piece.copy(this.#body, this.#bodyBytes, at, at + length);
    this.#bodyBytes += length;
    return OK;
  }

  completed(): number {
    if (this.#value !== undefined) this.#keep();
    if (this.#status < 200) return OK;
    this.#awaited = false;
    this.#ended = true;
    return OK;
  }

  /** Whether headers at this point of the response are kept. */
  get #keeps(): boolean {
    return !this.#headed || this.#form.isWhole;
  }

  #keep(): void {
    if (this.#keptAs !== undefined) this.#form.add(this.#place(), this.#keptAs, this.#value!);
    this.#name = '';
    this.#value = undefined;
  }

  #place(): Headers {
    if (!this.#headed) return this.#headers;
    this.#trailers ??= this.#form.create();
    return this.#trailers;
  }

  /** Counts names and values, including those of trailers. */
  #counted(length: number): number {
    this.#headBytes += length;
    return this.#headBytes > MAX_HEAD_BYTES ? STOP : OK;
  }
}
