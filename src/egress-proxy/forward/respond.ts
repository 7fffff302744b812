/** Writes responses to the sandbox: those of hosts, scrubbed, and refusals. */
import type http from 'node:http';
import { STATUS_CODES } from 'node:http';
import { type Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Duplex } from 'node:stream';
import type { Allowance } from '../../base/allowance.ts';
import { GatewayRequest } from '../../http/message.ts';
import { type Refusal, refusalResponse } from '../refusal.ts';
import type { SecretTexts } from '../text/release.ts';
import { syntaxOf } from '../text/value-forms.ts';
import { checkTransfer, codingsOf, decoded, held, pump, type Sink } from './bodies.ts';
import { asObject, flat, headerOf, type Pair, pair, scrubbedPairs } from './heads.ts';
import type { Answer } from './send.ts';

export type ServerRequest = http.IncomingMessage | Http2ServerRequest;
export type ServerResponse = http.ServerResponse | Http2ServerResponse;

/** Passes a response on. @throws Refusal before anything is written, or what broke in between */
export async function respond(
  answer: Answer,
  request: ServerRequest,
  response: ServerResponse,
  texts: SecretTexts,
  allowance: Allowance,
): Promise<void> {
  const scrubbed = scrubbedPairs(answer.pairs, texts);
  const length = headerOf(answer.pairs, 'content-length');
  const isEmpty = request.method === 'HEAD' || answer.status === 204 || answer.status === 304;
  if (isEmpty) {
    if (answer.body.whole === undefined) answer.body.stream.resume();
    writeHead(answer, response, [...withoutTrailer(scrubbed), ...lengthOf(length)], texts);
    response.end();
    return;
  }
  checkTransfer(answer.pairs);
  // Those of the host: its Connection header may take the name of a coding away.
  const codings = codingsOf(answer.pairs);
  const body = codings.length === 0 ? answer.body : decoded(answer.body, codings);
  const passed = codings.length === 0 ? scrubbed : scrubbed.filter(([, , name]) => name !== 'content-encoding');
  const keepsLength = syntaxOf(headerOf(scrubbed, 'content-type')) === null;
  const replacer = texts.scrubber(keepsLength);
  const sink = response as unknown as Sink;
  const known = codings.length === 0 && length !== undefined ? Number(length) : Number.NaN;
  const whole = keepsLength ? undefined : await held(body, known, replacer, allowance);
  if (whole !== undefined) {
    try {
      writeHead(answer, response, [...withoutTrailer(passed), pair('content-length', String(whole.length))], texts);
      addTrailers(response, scrubbedPairs(answer.trailers(), texts));
      await whole.endOn(sink);
    } finally {
      whole.letGo();
    }
    return;
  }
  const hasLength = keepsLength && codings.length === 0 && length !== undefined;
  const isChunked = !hasLength && request.httpVersion !== '1.0';
  writeHead(
    answer,
    response,
    isChunked ? passed : [...withoutTrailer(passed), ...lengthOf(hasLength ? length : undefined)],
    texts,
  );
  if (!(response instanceof Http2ServerResponse)) response.flushHeaders();
  await pump(body.stream, replacer, sink);
  addTrailers(response, scrubbedPairs(answer.trailers(), texts));
  response.end();
}

/** Without the header that announces trailers: Node refuses it in a response that has a length, or no body. */
function withoutTrailer(pairs: Pair[]): Pair[] {
  return headerOf(pairs, 'trailer') === undefined ? pairs : pairs.filter(([, , name]) => name !== 'trailer');
}

function lengthOf(length: string | undefined): Pair[] {
  return length === undefined ? [] : [pair('content-length', length)];
}

function writeHead(answer: Answer, response: ServerResponse, pairs: Pair[], texts: SecretTexts): void {
  response.sendDate = false;
  if (response instanceof Http2ServerResponse) response.writeHead(answer.status, asObject(pairs));
  else response.writeHead(answer.status, texts.scrub(answer.statusText).replace(NO_REASON, ''), flat(pairs));
}

/** Node refuses these characters, llhttp does not. */
const NO_REASON = /[^\t\x20-\x7e\x80-\xff]/g;

function addTrailers(response: ServerResponse, pairs: Pair[]): void {
  if (pairs.length === 0) return;
  if (response instanceof Http2ServerResponse) response.addTrailers(asObject(pairs));
  else response.addTrailers(pairs.map(([name, value]) => [name, value] as const));
}

/** Answers with the refusal, or cuts the response if it has begun. */
export function refuse(refusal: Refusal, request: ServerRequest, response: ServerResponse): void {
  if (response.headersSent || response.writableEnded) {
    cut(response);
    // A response that has ended does not know the connection any more.
    if (response.writableEnded) request.destroy();
    return;
  }
  const { headers, body } = refusalResponse(refusal);
  // Those of the host may be why the response could not be written.
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  if (response instanceof Http2ServerResponse) response.writeHead(refusal.status, headers);
  // With a reason of its own: that of the host may be the one that could not be written.
  else response.writeHead(refusal.status, STATUS_CODES[refusal.status] ?? 'Refused', headers);
  response.end(body);
  // Otherwise a client that is still sending would not read the response.
  if (request instanceof GatewayRequest) request.readInto({ receive: () => true, received: () => {} });
  else request.resume();
}

/** Ends a response in a way that the client notices. */
function cut(response: ServerResponse): void {
  if (response instanceof Http2ServerResponse) response.stream?.destroy(new Error('cut'));
  else response.destroy();
}

/** Answers where no response object exists: to CONNECT, and to what is not HTTP. The connection ends. */
export function refuseOn(socket: Duplex, refusal: Refusal): void {
  if (!socket.writable) return void socket.destroy();
  const { headers, body } = refusalResponse(refusal);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${refusal.status} Refused\r\n${lines.join('')}connection: close\r\n\r\n${body}`);
  socket.resume();
}
