/**
 * Recorded provider traffic for tests: the folder named by GATEHOUSE_CORPUS, or `../shared/corpus` beside the project. It
 * is not part of the repository; tests that need it skip with `corpusMissing` where it is not there. This reader shares no
 * code with `src/formats` and `src/http`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export interface RecordedEvent {
  name: string;
  data: string;
}

export interface Recording {
  /** Folder and file name, e.g. `anthropic/messages-refusal.json`; `#2` for the second exchange of a file. */
  id: string;
  provider: string;
  api: string;
  status: number;
  stream: boolean;
  /** The body as text; of a stream its lines. */
  text: string;
  /** Of a stream. */
  events: RecordedEvent[];
  /** The request, where the source kept it. */
  request: Record<string, unknown> | undefined;
}

const FOLDER = process.env['GATEHOUSE_CORPUS'] ?? resolve(import.meta.dirname, '../../../shared/corpus');

/** Why tests on recordings are skipped; false when they can run. */
export const corpusMissing: string | false = existsSync(FOLDER)
  ? false
  : 'no recorded traffic: GATEHOUSE_CORPUS names no folder';

const ENDINGS = ['.chunks.txt', '.sse', '.json'];

/** All recordings of these apis (column `api` of the corpus's index) of providers whose name matches. */
export function recordings(apis: readonly string[], provider: RegExp = /./): Recording[] {
  if (corpusMissing !== false) return [];
  const found: Recording[] = [];
  for (const folder of readdirSync(FOLDER, { withFileTypes: true })) {
    if (!folder.isDirectory()) continue;
    for (const file of readdirSync(join(FOLDER, folder.name)).sort()) {
      const ending = ENDINGS.find((name) => file.endsWith(name));
      if (ending === undefined || /\.(meta|req)\.json$/.test(file)) continue;
      const base = join(FOLDER, folder.name, file.slice(0, -ending.length));
      const meta = existsSync(`${base}.meta.json`)
        ? JSON.parse(readFileSync(`${base}.meta.json`, 'utf8'))
        : documentedError(folder.name, file);
      if (meta === undefined) continue;
      if (!apis.includes(meta.api) || !provider.test(meta.provider)) continue;
      found.push(...readFile(`${folder.name}/${file}`, base + ending, meta));
    }
  }
  return found;
}

interface Meta {
  provider: string;
  api: string;
  status: number;
}

/** Files of `errors-documented` say in their names what they are: `anthropic-529-overloaded.json`. */
function documentedError(folder: string, file: string): Meta | undefined {
  const apis: Record<string, string> = { anthropic: 'messages', gemini: 'generate' };
  const provider = file.split('-')[0] ?? '';
  if (folder !== 'errors-documented') return undefined;
  return { provider, api: apis[provider] ?? 'chat', status: Number(/-(\d{3})-/.exec(file)?.[1] ?? 200) };
}

function readFile(id: string, path: string, meta: Meta): Recording[] {
  const text = readFileSync(path, 'utf8');
  const requestPath = path.replace(/\.(chunks\.txt|sse|json)$/, '.req.json');
  const request = existsSync(requestPath) ? JSON.parse(readFileSync(requestPath, 'utf8')) : undefined;
  const streams = readStreams(path, text, meta);
  if (streams === undefined) return [{ ...meta, id, stream: false, text, events: [], request }];
  return streams.map((events, index) => ({
    ...meta,
    id: streams.length > 1 ? `${id}#${index + 1}` : id,
    stream: true,
    text: events.map((event) => event.data).join('\n'),
    events,
    request,
  }));
}

/** The streams of a file, undefined when it holds a whole answer. */
function readStreams(path: string, text: string, meta: Meta): RecordedEvent[][] | undefined {
  if (path.endsWith('.sse')) return [readServerSentEvents(text)];
  let lines: string[] | undefined;
  if (path.endsWith('.chunks.txt')) lines = text.split('\n').filter((line) => line.trim() !== '');
  // A few sources keep a stream as a JSON array of its events.
  else if (meta.status < 300 && meta.api === 'messages' && text.trimStart().startsWith('[')) {
    lines = JSON.parse(text).map((event: unknown) => JSON.stringify(event));
  }
  return lines === undefined ? undefined : splitExchanges(lines);
}

/** Some files hold several exchanges one after the other: a new start behind an end begins the next. */
function splitExchanges(lines: readonly string[]): RecordedEvent[][] {
  const streams: RecordedEvent[][] = [];
  let over = true;
  for (const line of lines) {
    const type: unknown = JSON.parse(line).type;
    if (over && (streams.length === 0 || type === 'message_start')) streams.push([]);
    over = type === 'message_stop';
    streams.at(-1)?.push({ name: typeof type === 'string' ? type : '', data: line });
  }
  return streams;
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
