/**
 * Recorded provider traffic for tests: requests, and responses as they were on the wire. It is not part of the project:
 * `GATEHOUSE_CORPUS` names its folder; the default is `../shared/corpus` next to the project. Without it tests skip with
 * `corpusMissing`. Its INDEX.md describes the recordings; this reader restores what storing them removed (framing, and
 * exchanges that share a file). It shares no code with `src/formats` and `src/http`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { crc32 } from 'node:zlib';

export interface RecordedEvent {
  name: string;
  data: string;
}

export interface Recording {
  /** Folder and file name, e.g. `anthropic/messages-refusal.json`; `#2` for the second exchange of a file. */
  id: string;
  provider: string;
  /** chat, messages, responses, generate, converse, converse-stream, embeddings, rerank, ... */
  api: string;
  status: number;
  stream: boolean;
  /** Those that a gateway reads, lower case. */
  headers: Record<string, string>;
  /** The body as it was on the wire, framing included. */
  bytes: Buffer;
  /** The body as text; of an event stream the data of its events, a line each. */
  text: string;
  /** Of an event stream. */
  events: RecordedEvent[];
  /** The body of the request, where the source kept it. */
  request: Record<string, unknown> | undefined;
}

const FOLDER = resolve(process.env['GATEHOUSE_CORPUS'] ?? join(import.meta.dirname, '../../../../shared/corpus'));

/** Why tests on recordings are skipped; false when they can run. */
export const corpusMissing: string | false = existsSync(FOLDER)
  ? false
  : 'no recorded traffic: GATEHOUSE_CORPUS names no folder';

/** All recordings of these apis (column `api` of the corpus's index; default all) of providers whose name matches. */
export function recordings(apis?: readonly string[], provider: RegExp = /./): Recording[] {
  if (corpusMissing !== false) return [];
  const found: Recording[] = [];
  for (const folder of readdirSync(FOLDER, { withFileTypes: true })) {
    if (!folder.isDirectory()) continue;
    for (const file of readdirSync(join(FOLDER, folder.name)).sort()) {
      const kind = KINDS.find((ending) => file.endsWith(ending));
      if (kind === undefined || /\.(meta|req)\.\w+$/.test(file)) continue;
      const id = `${folder.name}/${file}`;
      const base = join(FOLDER, folder.name, file.slice(0, -kind.length));
      const meta = (readJson(`${base}.meta.json`) as Meta | undefined) ?? indexed(id);
      if (meta === undefined || (apis !== undefined && !apis.includes(meta.api)) || !provider.test(meta.provider))
        continue;
      const request = readJson(`${base}.req.json`) as Record<string, unknown> | undefined;
      found.push(...readFile(id, kind, readFileSync(join(FOLDER, folder.name, file)), meta, request));
    }
  }
  return found;
}

const KINDS = ['.eventstream.bin', '.chunks.txt', '.sse', '.jsonl', '.html', '.json', '.txt'] as const;
type Kind = (typeof KINDS)[number];

const READ_HEADERS =
  /^(content-type|retry-after(-ms)?|x-should-retry|(x-|x-amzn-)?request-?id|x-amzn-errortype|(x|anthropic)-ratelimit-.*)$/;

interface Meta {
  provider: string;
  api: string;
  status: number;
  headers?: Record<string, string | string[]>;
}

/** Those written from descriptions are in the index only: file, provider, api, stream, status. */
function indexed(id: string): Meta | undefined {
  const index = readFileSync(join(FOLDER, 'INDEX.md'), 'utf8');
  const row = index.split('\n').find((line) => line.startsWith(`| ${id} |`));
  if (row === undefined) return undefined;
  const [, , provider = '', api = '', , status] = row.split('|').map((cell) => cell.trim());
  return { provider, api, status: Number(status) };
}

function readFile(id: string, kind: Kind, raw: Buffer, meta: Meta, request: Recording['request']): Recording[] {
  const { provider, api, status } = meta;
  const lines = unframedEvents(kind, raw, meta);
  const bodies = lines === undefined ? [raw] : exchanges(lines, api).map((part) => framed(part, provider, api));
  const isEventStream = kind === '.sse' || (lines !== undefined && !api.startsWith('converse'));
  const stream = isStream(id, kind, meta, request) || lines !== undefined;
  const headers = readHeaders(meta.headers ?? {});
  if (isEventStream && !headers['content-type']?.includes('event-stream'))
    headers['content-type'] = 'text/event-stream';
  else if (kind === '.eventstream.bin' || lines !== undefined)
    headers['content-type'] ??= 'application/vnd.amazon.eventstream';
  else if (kind === '.json') headers['content-type'] ??= 'application/json';
  else if (kind === '.jsonl') headers['content-type'] ??= 'application/x-ndjson';
  else if (kind === '.html') headers['content-type'] ??= 'text/html';
  return bodies.map((bytes, at) => {
    const number = bodies.length > 1 ? `#${at + 1}` : '';
    const events = isEventStream ? readServerSentEvents(bytes.toString()) : [];
    const text = isEventStream ? events.map((event) => event.data).join('\n') : bytes.toString();
    return { id: id + number, provider, api, status, stream, headers, bytes, text, events, request };
  });
}

function isStream(id: string, kind: Kind, meta: Meta, request: Recording['request']): boolean {
  if (kind === '.sse' || kind === '.eventstream.bin' || (kind === '.jsonl' && meta.api !== 'batches')) return true;
  return /(^|[/-])stream-/.test(id) || request?.['stream'] === true;
}

/** The events, a line each, where the source dropped their framing; undefined where it kept the bytes. */
function unframedEvents(kind: Kind, raw: Buffer, meta: Meta): string[] | undefined {
  if (kind === '.chunks.txt')
    return raw
      .toString()
      .split('\n')
      .filter((line) => line.trim() !== '');
  return eventArray(kind, raw, meta);
}

/** A few sources kept a stream as one JSON array of its events. */
function eventArray(kind: Kind, raw: Buffer, meta: Meta): string[] | undefined {
  if (kind !== '.json' || meta.status >= 300 || (meta.api !== 'messages' && meta.api !== 'generate')) return undefined;
  const value: unknown = JSON.parse(raw.toString());
  return Array.isArray(value) ? value.map((event) => JSON.stringify(event)) : undefined;
}

/** Some files hold several answers in a row; one begins where the one before has ended, not wherever a start is repeated. */
function exchanges(lines: readonly string[], api: string): string[][] {
  const parts: string[][] = [[]];
  let ended = false;
  let chatId: unknown;
  for (const line of lines) {
    const event = JSON.parse(line) as { type?: string; id?: unknown; choices?: { finish_reason?: unknown }[] };
    const begins = api === 'messages' ? event.type === 'message_start' : Boolean(event.id) && event.id !== chatId;
    if (ended && begins) {
      parts.push([]);
      ended = false;
    }
    chatId = event.id || chatId;
    ended ||=
      api === 'messages'
        ? event.type === 'message_stop'
        : api === 'chat' && Boolean(event.choices?.some((choice) => choice.finish_reason));
    parts.at(-1)!.push(line);
  }
  return parts;
}

function framed(lines: readonly string[], provider: string, api: string): Buffer {
  if (api.startsWith('converse')) return Buffer.concat(lines.map(converseMessage));
  // These two services end their lines with CR LF.
  const end = api === 'generate' || provider === 'perplexity' ? '\r\n' : '\n';
  const named = api === 'messages' || api === 'responses';
  const events = lines.map((line) => {
    const name = named ? `event: ${(JSON.parse(line) as { type: string }).type}${end}` : '';
    return `${name}data: ${line}${end}${end}`;
  });
  if (api === 'chat' && provider !== 'cohere') events.push(`data: [DONE]${end}${end}`);
  return Buffer.from(events.join(''));
}

/** One line, `{"<event type>": <payload>}`, as a message of the AWS event stream encoding. */
function converseMessage(line: string): Buffer {
  const [[type, payload]] = Object.entries(JSON.parse(line) as Record<string, unknown>) as [[string, unknown]];
  return awsMessage(
    { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' },
    Buffer.from(JSON.stringify(payload)),
  );
}

/** Lengths, headers and checksums as the encoding demands; all header values are strings (type 7). */
export function awsMessage(headers: Record<string, string>, payload: Buffer): Buffer {
  const packed = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(Buffer.byteLength(value));
      return Buffer.concat([
        Buffer.from([Buffer.byteLength(name)]),
        Buffer.from(name),
        Buffer.from([7]),
        length,
        Buffer.from(value),
      ]);
    }),
  );
  const message = Buffer.alloc(16 + packed.length + payload.length);
  message.writeUInt32BE(message.length, 0);
  message.writeUInt32BE(packed.length, 4);
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8);
  packed.copy(message, 12);
  payload.copy(message, 12 + packed.length);
  message.writeUInt32BE(crc32(message.subarray(0, -4)), message.length - 4);
  return message;
}

function readHeaders(given: Record<string, string | string[]>): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    const first = Array.isArray(value) ? value[0] : value;
    if (first !== undefined && READ_HEADERS.test(name.toLowerCase())) headers[name.toLowerCase()] = first;
  }
  return headers;
}

function readJson(file: string): unknown {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}

/** The events of an event stream's text: any line end, comments left out, several data lines joined. */
export function readServerSentEvents(text: string): RecordedEvent[] {
  const events: RecordedEvent[] = [];
  for (const block of text.split(/\r\n\r\n|\n\n|\r\r/)) {
    let name = '';
    const data: string[] = [];
    for (const line of block.split(/\r\n|\n|\r/)) {
      if (line.startsWith('event:')) name = line.slice(6).trimStart();
      else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
    }
    if (data.length > 0) events.push({ name, data: data.join('\n') });
  }
  return events;
}
