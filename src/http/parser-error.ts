/**
 * Requests that Node's parser rejects before there is a request object: answered with the error envelope all the same.
 */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import { encodeEnvelope } from './envelope.ts';

/** The error for a client whose bytes Node rejected with `error`; undefined if the client cannot be answered. */
export function parserError(error: Error): GatewayError | undefined {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new GatewayError('invalid_request', 'the headers are too large', { status: 431 });
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new GatewayError('invalid_request', 'the headers took too long to arrive', { status: 408 });
  }
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') {
    return new GatewayError('payload_too_large', 'the chunk extensions are too large');
  }
  if (!code.startsWith('HPE_') || code === 'HPE_INVALID_EOF_STATE') return undefined;
  return new GatewayError('invalid_request', 'this is not a valid HTTP request');
}

/** Writes the response by hand and closes the connection. */
export function answerParserError(error: GatewayError, socket: Socket, nowMs: number): void {
  const body = JSON.stringify(encodeEnvelope(error, undefined));
  socket.write(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nX-Request-Id: ${uuidv7(nowMs)}\r\nConnection: close\r\n\r\n${body}`,
  );
  socket.destroySoon();
}
