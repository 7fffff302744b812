/**
 * The input file of `gatehouse batch submit`, as the body of `POST /batches`. The file is read several times, as a stream:
 * to check its lines, to learn the length and checksum of the body, and to send it. Memory holds one line at a time.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type JsonDocument, readDocument } from '../../base/json.ts';
import { applyEdits, type Edit } from '../../base/json-edits.ts';
import { BatchProblem, EXIT } from './problem.ts';

export interface InputOptions {
  file: string;
  /** Replaces the models that the lines name. */
  model: string | undefined;
  /** `/v1/...`; the lines may not name another. */
  endpoint: string | undefined;
  callbackUrl: string | undefined;
}

export interface Input {
  endpoint: string;
  model: string;
  requests: number;
  /** Of the whole body. */
  bytes: number;
  sha256: string;
  /** Reads the file again. */
  chunks(): AsyncGenerator<Buffer>;
  /** The number of the line with a request, counted from 1. */
  lineOf(request: number): number;
}

const DEFAULT_ENDPOINT = '/v1/chat/completions';
const LONGEST_LINE_BYTES = 64 * 1024 * 1024;
const READ_BYTES = 256 * 1024;
const MEMBERS = ['custom_id', 'body', 'method', 'url'];
const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d];
const COMMA = Buffer.from(',');
const TAIL = Buffer.from(']}');
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

interface Line {
  number: number;
  bytes: Buffer;
}

interface Item {
  /** `{"custom_id": ..., "body": {...}}` */
  json: Buffer;
  url: string | undefined;
  model: string | undefined;
}

/** @throws BatchProblem that names the line */
export async function readInput(options: InputOptions): Promise<Input> {
  const about = await stat(options.file).catch(() => undefined);
  if (about?.isFIFO() || about?.isSocket() || about?.isCharacterDevice()) {
    throw wrong(`${options.file} must be a file: it is read more than once`);
  }
  const found: { url?: string; model?: string } = {};
  /** Lines without a request, in order. */
  const blank: number[] = [];
  let requests = 0;
  for await (const line of linesOf(options.file)) {
    if (line.bytes.length === 0) blank.push(line.number);
    else {
      const item = itemOf(line, options);
      if (item.url !== undefined) found.url = agreed(line, 'url', item.url, options.endpoint ?? found.url);
      if (item.model !== undefined) found.model = agreed(line, 'model', item.model, found.model);
      requests += 1;
    }
  }
  if (requests === 0) throw wrong(`${options.file} has no requests`);
  const endpoint = options.endpoint ?? found.url ?? DEFAULT_ENDPOINT;
  const model = options.model ?? found.model;
  if (model === undefined) throw wrong('no model is named: give --model');
  const head = headOf({ endpoint, model, callback_url: options.callbackUrl });
  const chunks = () => bodyOf(head, options);
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of chunks()) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  const lineOf = (request: number) => blank.reduce((line, skipped) => (skipped <= line ? line + 1 : line), request + 1);
  return { endpoint, model, requests, bytes, sha256: hash.digest('hex'), chunks, lineOf };
}

function headOf(members: Record<string, string | undefined>): Buffer {
  return Buffer.from(`${JSON.stringify(members).slice(0, -1)},"requests":[`);
}

async function* bodyOf(head: Buffer, options: InputOptions): AsyncGenerator<Buffer> {
  yield head;
  let first = true;
  for await (const line of linesOf(options.file)) {
    if (line.bytes.length === 0) continue;
    const { json } = itemOf(line, options);
    yield first ? json : Buffer.concat([COMMA, json]);
    first = false;
  }
  yield TAIL;
}

/** Ours, or OpenAI's with `method` and `url`. */
function itemOf(line: Line, { model }: InputOptions): Item {
  const document = lineDocument(line, line.bytes);
  const other = document.members.find(({ key }) => !MEMBERS.includes(key));
  if (other) throw wrongLine(line, `has the member ${JSON.stringify(other.key)}; expected custom_id and body`);
  const customId = document.member('custom_id');
  if (typeof customId !== 'string' || customId === '') throw wrongLine(line, 'has no custom_id');
  const method = document.member('method') ?? 'POST';
  if (method !== 'POST') throw wrongLine(line, 'has a method other than POST');
  const url = document.member('url');
  if (url !== undefined && typeof url !== 'string') throw wrongLine(line, 'has a url that is not a text');
  const place = document.members.find(({ key }) => key === 'body');
  if (place === undefined) throw wrongLine(line, 'has no body');
  const body = lineDocument(line, line.bytes.subarray(place.valueStart, place.valueEnd), 'has a body that ');
  const own = body.member('model');
  const edits: Edit[] = model !== undefined && own !== undefined ? [{ key: 'model', json: undefined }] : [];
  const json = [
    Buffer.from(`{"custom_id":${JSON.stringify(customId)},"body":`),
    applyEdits(body, edits),
    Buffer.from('}'),
  ];
  return {
    json: Buffer.concat(json),
    url,
    model: model === undefined && typeof own === 'string' ? own : undefined,
  };
}

function lineDocument(line: Line, bytes: Buffer, begin = ''): JsonDocument {
  try {
    return readDocument(bytes);
  } catch (error) {
    throw wrongLine(line, `${begin}is not a JSON object: ${(error as Error).message}`);
  }
}

/** All requests of a batch have one endpoint and one model. */
function agreed(line: Line, name: string, value: string, expected: string | undefined): string {
  if (expected === undefined || expected === value) return value;
  const advice = name === 'model' ? '; --model replaces them all' : '';
  throw wrongLine(line, `has the ${name} ${value}, but the batch has ${expected}${advice}`);
}

async function* linesOf(file: string): AsyncGenerator<Line> {
  let number = 0;
  let parts: Buffer[] = [];
  let partBytes = 0;
  const take = (last: Buffer): Line => {
    const whole = parts.length === 0 ? last : Buffer.concat([...parts, last]);
    [parts, partBytes] = [[], 0];
    number += 1;
    return { number, bytes: trimmed(whole, number) };
  };
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>) {
      let from = 0;
      for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
        yield take(chunk.subarray(from, end));
        from = end + 1;
      }
      if (from === chunk.length) continue;
      parts.push(chunk.subarray(from));
      partBytes += chunk.length - from;
      if (partBytes > LONGEST_LINE_BYTES) {
        throw wrong(`line ${number + 1} is longer than ${LONGEST_LINE_BYTES / 1024 / 1024} MiB`);
      }
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT') throw wrong(`there is no file ${file}`);
    throw code === undefined ? error : wrong(`${file} cannot be read (${code})`);
  }
  if (partBytes > 0) yield take(Buffer.alloc(0));
}

/** Without a carriage return, the mark at the begin of a file, and spaces that are all there is. */
function trimmed(bytes: Buffer, number: number): Buffer {
  const from = number === 1 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0;
  const to = bytes.at(-1) === CARRIAGE_RETURN ? bytes.length - 1 : bytes.length;
  const line = bytes.subarray(from, Math.max(from, to));
  return line.every((byte) => byte === 0x20 || byte === 0x09) ? line.subarray(0, 0) : line;
}

function wrong(message: string): BatchProblem {
  return new BatchProblem(message, EXIT.wrongInput);
}

function wrongLine({ number }: Line, problem: string): BatchProblem {
  return wrong(`line ${number} ${problem}`);
}
