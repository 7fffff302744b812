/** The body of a request as bytes: the checks of its headers, and the buffer for its chunks. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { GatewayError } from '../base/errors.ts';
import { isMultipart } from './multipart.ts';
import type { Operation, UploadRule } from './operation.ts';

/** `application/json` and its variants (`application/scim+json`), in UTF-8. */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;
const FORM = 'application/x-www-form-urlencoded';
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]+)/i;
const DIGITS = /^\d{1,15}$/;

/** True when the request announces a body, even an empty one. */
export function announcesBody(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** True when the client waits with its body for the interim response 100, which HTTP/1.0 does not have. */
export function awaitsContinue({ headers, httpVersion }: Pick<IncomingMessage, 'headers' | 'httpVersion'>): boolean {
  return headers.expect !== undefined && httpVersion === '1.1';
}

/**
 * Returns the announced length in bytes, undefined for a chunked body. Throws GatewayError 415 for anything but plain
 * JSON, or what else the operation takes, and 413 for an announced length over the limit. Compressed bodies are refused:
 * no client of these formats sends them, and limiting the decompressed size would cost every request.
 */
export function checkBodyHeaders(
  headers: IncomingHttpHeaders,
  maxBytes: number,
  { form = false, multipart, optional }: Pick<NonNullable<Operation['body']>, 'form' | 'multipart' | 'optional'> = {},
): number | undefined {
  const type = headers['content-type'];
  if (multipart !== undefined && isMultipart(headers)) return checkLength(headers, maxBytes);
  if (form) {
    if (type === undefined || !FORM_TYPE.test(type)) throw refuseMedia(`the header content-type must be ${FORM}`);
  } else if (type !== undefined || !optional || headers['transfer-encoding'] === undefined) checkJsonType(type);
  // Otherwise the body may turn out to be empty, and then it needs no type.
  return checkLength(headers, maxBytes);
}

/** Throws GatewayError 415 for another media type than JSON. @param type the header `content-type` */
export function checkJsonType(type: string | undefined): void {
  if (type === 'application/json' || (type !== undefined && isJsonType(type))) return;
  const shown = type === undefined ? 'it is missing' : `it is ${JSON.stringify(type.slice(0, 100))}`;
  throw refuseMedia(`the header content-type must be application/json; ${shown}`);
}

/** For a streamed body. Throws GatewayError 415 for another media type and 413 like `checkBodyHeaders`. */
export function checkUploadHeaders(
  headers: IncomingHttpHeaders,
  { contentType, maxBytes }: Pick<UploadRule, 'contentType' | 'maxBytes'>,
): void {
  const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
  if (contentType !== undefined && type.trim().toLowerCase() !== contentType) {
    throw refuseMedia(`the header content-type must be ${contentType}`);
  }
  checkLength(headers, maxBytes);
}

/** Returns the announced length. */
function checkLength(headers: IncomingHttpHeaders, maxBytes: number): number | undefined {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw refuseMedia('compressed bodies are not supported: send no content-encoding', {
      'Accept-Encoding': 'identity',
    });
  }
  const transfer = headers['transfer-encoding'];
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked')
    throw refuseMedia('compressed bodies are not supported: the only transfer-encoding is chunked');
  const length = headers['content-length'];
  if (length === undefined) return undefined;
  if (!DIGITS.test(length)) throw new GatewayError('invalid_request', 'the header content-length must be a number');
  if (Number(length) > maxBytes) throw tooLarge(maxBytes);
  return Number(length);
}

export function slowBody(): GatewayError {
  return new GatewayError('invalid_request', 'the body took too long to arrive', { status: 408 });
}

export function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError('payload_too_large', `the body is larger than ${maxBytes} bytes`);
}

function isJsonType(type: string): boolean {
  if (!JSON_TYPE.test(type)) return false;
  const charset = CHARSET.exec(type)?.[1]?.toLowerCase();
  return charset === undefined || charset === 'utf-8' || charset === 'utf8' || charset === 'us-ascii';
}

function refuseMedia(message: string, headers?: Record<string, string>): GatewayError {
  return new GatewayError('invalid_request', message, { status: 415, headers });
}

const NOTHING = Buffer.alloc(0);
const MIN_CAPACITY = 4096;

/**
 * Collects a body that arrives in chunks. A single chunk is kept as it is. From the second chunk on, all are copied
 * into one buffer that grows by a factor, so neither many tiny chunks nor an announced length that never arrives costs
 * memory.
 */
export class BodyBuffer {
  length = 0;
  #bytes: Buffer = NOTHING;
  readonly #expected: number | undefined;

  constructor(expected: number | undefined) {
    this.#expected = expected;
  }

  add(chunk: Buffer): void {
    const length = this.length + chunk.length;
    if (this.length === 0) {
      this.#bytes = chunk;
    } else {
      if (length > this.#bytes.length) this.#grow(length);
      chunk.copy(this.#bytes, this.length);
    }
    this.length = length;
  }

  take(): Buffer {
    return this.#bytes.length === this.length ? this.#bytes : this.#bytes.subarray(0, this.length);
  }

  #grow(length: number): void {
    const expected = this.#expected ?? Number.POSITIVE_INFINITY;
    const wanted = Math.max((this.#expected === undefined ? 2 : 4) * length, MIN_CAPACITY);
    const capacity = Math.max(length, Math.min(wanted, expected));
    const grown = Buffer.allocUnsafe(capacity);
    this.#bytes.copy(grown, 0, 0, this.length);
    this.#bytes = grown;
  }
}
