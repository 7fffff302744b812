/**
 * The binary framing of AWS event streams (`application/vnd.amazon.eventstream`): messages with lengths, headers and
 * two checksums. The vendor's codec reads whole messages; this file assembles them from arbitrary chunks and emits the
 * events that the formats read.
 */

import { crc32 } from 'node:zlib';
import type { EventStreamCodec } from '@smithy/eventstream-codec';
import { EXCEPTION, failureFromException } from '../../formats/converse/index.ts';
import type { EventHandler, UnfinishedEvent } from '../../http/sse.ts';
import { EventTooLargeError } from '../../http/sse.ts';
import type { FrameReader, Framing } from './framing.ts';

/** Message length, header length, and the checksum of both. */
const PRELUDE_BYTES = 12;
/** The prelude plus the trailing checksum. */
const SMALLEST_MESSAGE_BYTES = 16;
/** Most bytes of a message besides its payload. */
const ENVELOPE_BYTES = 128 * 1024;
/** A larger carry buffer is released after the message that needed it. */
const CARRY_KEPT_BYTES = 64 * 1024;

let codec: EventStreamCodec | undefined;
let loading: Promise<void> | undefined;

/**
 * Loads the codec on demand, since few installations need it. Undefined once loaded. Await it before creating a
 * framing.
 */
export function eventStreamReady(): Promise<void> | undefined {
  if (codec !== undefined) return undefined;
  loading ??= import('@smithy/eventstream-codec').then((library) => {
    codec = new library.EventStreamCodec(
      (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'),
      (text) => Buffer.from(text, 'utf8'),
    );
  });
  return loading;
}

/** Streams of the converse format: an event's name is its type, its text the payload. */
export const converseFraming: Framing = (onEvent, limitBytes) =>
  new MessageReader(limitBytes, ({ kind, type, payload }) =>
    onEvent(kind === 'event' ? type : EXCEPTION + type, payload.toString('utf8')),
  );

/**
 * Streams of `invoke-with-response-stream`: each message carries an event of the model's own format in base64. A
 * service exception becomes the error event of the messages format.
 */
export const invokeFraming: Framing = (onEvent, limitBytes) =>
  new MessageReader(limitBytes, (message) => {
    if (message.kind === 'event') tellChunk(message, onEvent);
    else onEvent('error', JSON.stringify(errorEvent(message)));
  });

interface Message {
  kind: 'event' | 'exception';
  type: string;
  payload: Buffer;
}

function tellChunk({ type, payload }: Message, onEvent: EventHandler): void {
  if (type !== 'chunk') return;
  const wrapped: unknown = JSON.parse(payload.toString('utf8'));
  const bytes = (wrapped as { bytes?: unknown } | null)?.bytes;
  if (typeof bytes !== 'string') throw new Error('an event of the stream has no bytes');
  const data = Buffer.from(bytes, 'base64').toString('utf8');
  onEvent(/^\s*\{\s*"type"\s*:\s*"(\w+)"/.exec(data)?.[1] ?? '', data);
}

const ERROR_TYPES: Readonly<Record<string, string>> = {
  auth: 'authentication_error',
  content_filter: 'invalid_request_error',
  context_length: 'invalid_request_error',
  invalid_request: 'invalid_request_error',
  not_found: 'not_found_error',
  overloaded: 'overloaded_error',
  permission: 'permission_error',
  quota: 'billing_error',
  rate_limit: 'rate_limit_error',
  timeout: 'timeout_error',
  too_large: 'request_too_large',
};

function errorEvent({ type, payload }: Message): unknown {
  const text = payload.toString('utf8');
  const failure = failureFromException(type, parsed(text) ?? text, null);
  return { type: 'error', error: { type: ERROR_TYPES[failure.kind] ?? 'api_error', message: failure.message } };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Assembles messages. A message contained in one chunk is read in place. */
class MessageReader implements FrameReader {
  readonly stray = '';
  readonly #onMessage: (message: Message) => void;
  readonly #limitBytes: number;
  #stopped = false;
  #carry: Buffer | undefined;
  #carried = 0;
  /** Length of the message in the carry buffer, once its prelude is complete. */
  #awaited: number | undefined;

  constructor(limitBytes: number, onMessage: (message: Message) => void) {
    this.#onMessage = onMessage;
    this.#limitBytes = limitBytes;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && !this.#stopped) {
      if (this.#carried > 0) {
        at += this.#complete(chunk, at);
      } else if (chunk.length - at < PRELUDE_BYTES) {
        this.#keep(chunk, at, chunk.length);
        return;
      } else {
        const length = this.#lengthAt(chunk, at);
        if (chunk.length - at < length) {
          this.#awaited = length;
          this.#keep(chunk, at, chunk.length);
          return;
        }
        this.#read(chunk.subarray(at, at + length));
        at += length;
      }
    }
  }

  /** An incomplete message is discarded, because its checksum cannot be verified. */
  end(): UnfinishedEvent | null {
    this.stop();
    return null;
  }

  stop(): void {
    this.#stopped = true;
    this.#carry = undefined;
    this.#carried = 0;
  }

  /** Fills the carried message; returns how many bytes of the chunk it took. */
  #complete(chunk: Buffer, at: number): number {
    const wanted = (this.#awaited ?? PRELUDE_BYTES) - this.#carried;
    const taken = Math.min(wanted, chunk.length - at);
    this.#keep(chunk, at, at + taken);
    if (taken < wanted) return taken;
    if (this.#awaited === undefined) {
      this.#awaited = this.#lengthAt(this.#carry!, 0);
      return taken;
    }
    const carry = this.#carry!;
    const length = this.#carried;
    this.#carried = 0;
    this.#awaited = undefined;
    if (carry.length > CARRY_KEPT_BYTES) this.#carry = undefined;
    this.#read(carry.subarray(0, length));
    return taken;
  }

  /** The length in a prelude. Verifies its checksum first, so that a damaged length never causes a wait. */
  #lengthAt(buffer: Buffer, at: number): number {
    if (crc32(buffer.subarray(at, at + 8)) !== buffer.readUInt32BE(at + 8)) throw damaged();
    const length = buffer.readUInt32BE(at);
    if (length < SMALLEST_MESSAGE_BYTES) throw damaged();
    if (length > this.#limitBytes + ENVELOPE_BYTES) throw new EventTooLargeError(this.#limitBytes);
    return length;
  }

  /** Appends to the carry buffer, which doubles when full: copying stays linear even byte by byte. */
  #keep(chunk: Buffer, start: number, end: number): void {
    const needed = this.#carried + end - start;
    if (this.#carry === undefined || this.#carry.length < needed) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * (this.#carry?.length ?? 512)));
      this.#carry?.copy(larger, 0, 0, this.#carried);
      this.#carry = larger;
    }
    chunk.copy(this.#carry, this.#carried, start, end);
    this.#carried = needed;
  }

  #read(bytes: Buffer): void {
    let message: Message;
    try {
      message = decode(bytes);
    } catch {
      throw damaged();
    }
    this.#onMessage(message);
  }
}

function decode(bytes: Buffer): Message {
  const { headers, body } = codec!.decode(bytes);
  const text = (name: string) => {
    const value = headers[name]?.value;
    return typeof value === 'string' ? value : '';
  };
  const payload = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  switch (text(':message-type')) {
    case 'event':
      return { kind: 'event', type: text(':event-type'), payload };
    case 'exception':
      return { kind: 'exception', type: text(':exception-type'), payload };
    default: {
      // An error outside the service's model has its text in the headers.
      const message = text(':error-message') || 'the stream reported an error without a message';
      return { kind: 'exception', type: text(':error-code'), payload: Buffer.from(JSON.stringify({ message })) };
    }
  }
}

function damaged(): Error {
  return new Error('a message of the event stream is damaged');
}
