/**
 * Parses upstream responses with llhttp, the parser of Node and undici, in strict mode. llhttp alone decides what a
 * response is and where it ends. Results are passed on only after a piece has been parsed, so the reader may do
 * anything to the connection.
 */
import binary from 'undici/lib/llhttp/llhttp-wasm.js';

/** Called in order, for each piece that is read. */
export interface AnswerReader {
  /** Once per response; informational ones (1xx) are skipped. */
  answerHead(status: number, headers: Record<string, string>): void;
  /** The reader may keep the chunk. */
  answerData(chunk: Buffer): void;
  /** @param reusable whether another exchange may use the connection */
  answerEnd(reusable: boolean): void;
  /** The bytes are not valid HTTP; nothing more can be parsed. */
  answerMalformed(): void;
}

/** Headers by lower-case name. Of a repeated header, the first value. */
type Headers = Record<string, string>;

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
const ANSWERS = 2;
const MAX_HEAD_BYTES = 64 * 1024;

/** Most bytes parsed at once. */
export const PIECE_BYTES = 64 * 1024;

let current: AnswerParser | undefined;

const { exports } = new WebAssembly.Instance(new WebAssembly.Module(binary), {
  env: {
    wasm_on_url: () => OK,
    wasm_on_status: () => OK,
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
export class AnswerParser {
  readonly #reader: AnswerReader;
  /** Selects the headers to keep, by lower-case name. */
  readonly #wanted: (name: string) => boolean;
  #parser = llhttp.llhttp_alloc(ANSWERS);
  #piece!: Buffer;
  /** Whether a requested response has not ended yet. */
  #awaited = false;
  /** Whether its head has arrived. */
  #headed = false;
  #headBytes = 0;
  #name = '';
  /** Undefined before the header's value begins. */
  #value: string | undefined;
  /** Whether the header is wanted; known once its value begins. */
  #keeps = false;
  #headers: Headers = {};
  #status = 0;
  #keepAlive = false;
  // Results of the piece being parsed.
  #newHead = false;
  #body: Buffer | undefined;
  #bodyBytes = 0;
  #ended = false;

  constructor(reader: AnswerReader, wanted: (name: string) => boolean) {
    this.#reader = reader;
    this.#wanted = wanted;
  }

  /** A request is being sent, so a response may arrive. */
  expect(): void {
    this.#awaited = true;
  }

  read(piece: Buffer): void {
    for (let at = 0; at < piece.length && this.#parser !== 0; at += PIECE_BYTES) {
      const part = piece.length <= PIECE_BYTES ? piece : piece.subarray(at, at + PIECE_BYTES);
      // The WebAssembly memory grew, which detaches its old buffer.
      if (areaBytes.length === 0) areaBytes = new Uint8Array(llhttp.memory.buffer, area, PIECE_BYTES);
      areaBytes.set(part);
      this.#piece = part;
      current = this;
      const result = llhttp.llhttp_execute(this.#parser, area, part.length);
      this.#handOn(result === OK);
    }
  }

  /** The upstream closed the connection, which ends a response without a length. */
  finish(): void {
    if (this.#parser === 0) return;
    current = this;
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
      this.#reader.answerHead(this.#status, this.#headers);
    }
    if (this.#body !== undefined) {
      const body = this.#body.length === this.#bodyBytes ? this.#body : this.#body.subarray(0, this.#bodyBytes);
      this.#body = undefined;
      this.#bodyBytes = 0;
      this.#reader.answerData(body);
    }
    if (this.#ended) {
      this.#ended = false;
      // Bytes after the end of a response must not become the response to the next request.
      this.#reader.answerEnd(fine && this.#keepAlive);
    } else if (!fine) this.#reader.answerMalformed();
  }

  // Callbacks of llhttp. Offsets are relative to the piece.

  begun(): number {
    this.#headed = false;
    this.#headBytes = 0;
    this.#headers = {};
    this.#name = '';
    this.#value = undefined;
    return this.#awaited ? OK : STOP;
  }

  name(at: number, length: number): number {
    if (this.#value !== undefined) this.#keep();
    if (!this.#headed) this.#name += this.#piece.toString('latin1', at, at + length);
    return this.#counted(length);
  }

  value(at: number, length: number): number {
    if (this.#value === undefined) {
      this.#value = '';
      this.#name = this.#name.toLowerCase();
      this.#keeps = !this.#headed && this.#wanted(this.#name);
    }
    // Most headers are not wanted, and no text is made of their values.
    if (this.#keeps) this.#value += this.#piece.toString('latin1', at, at + length);
    return this.#counted(length);
  }

  headed(status: number, upgrade: boolean, keepAlive: boolean): number {
    if (this.#value !== undefined) this.#keep();
    if (upgrade || status < 100) return STOP;
    this.#headed = true;
    this.#status = status;
    this.#keepAlive = keepAlive;
    if (status >= 200) this.#newHead = true;
    return OK;
  }

  body(at: number, length: number): number {
    this.#body ??= Buffer.allocUnsafe(this.#piece.length - at);
    this.#piece.copy(this.#body, this.#bodyBytes, at, at + length);
    this.#bodyBytes += length;
    return OK;
  }

  completed(): number {
    if (this.#status < 200) return OK;
    this.#awaited = false;
    this.#ended = true;
    return OK;
  }

  #keep(): void {
    if (this.#keeps) this.#headers[this.#name] ??= this.#value!.trim();
    this.#name = '';
    this.#value = undefined;
  }

  /** Counts names and values, including those of trailers. */
  #counted(length: number): number {
    this.#headBytes += length;
    return this.#headBytes > MAX_HEAD_BYTES ? STOP : OK;
  }
}
