/**
 * The log: one event per line, readable on a terminal, JSON elsewhere. Secrets registered with `redact` never appear in a
 * line, even inside messages. Logging never throws, never waits and never grows without bound.
 * Frequent lines are buffered briefly and written together.
 */
import { cut } from './characters.ts';
import { type Clock, systemClock, type Timer } from './clock.ts';
import { secretForms } from './secret-forms.ts';

export type Level = 'debug' | 'info' | 'warn' | 'error';

/** The fields of an event. Errors are written with their stack and causes; long values are cut. */
export type Fields = Record<string, unknown>;

export interface Log {
  /** @param event what happened, a short constant text such as `listening` or `upstream failed` */
  debug(event: string, fields?: Fields): void;
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
  /**
   * For frequent events: costs a tenth, and is written at most a tenth of a second later, in the order of all lines.
   * `undefined` is left out.
   */
  often(level: Level, event: string, fields: Readonly<Record<string, string | number | boolean | undefined>>): void;
  /** Writes the lines that `often` has buffered. */
  flush(): void;
  /** A log that adds `fields` to every line. */
  with(fields: Fields): Log;
}

/** The output; process.stderr is one. */
interface LogStream {
  write(line: string): unknown;
  readonly isTTY?: boolean;
  readonly writableLength?: number;
  on?(event: 'error', listener: (error: Error) => void): unknown;
}

export interface LogOptions {
  stream: LogStream;
  /** Lines below it are not written. Default `info`. */
  level?: Level;
  clock?: Clock;
}

const RANK: Record<Level, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Longest text of one field, in characters. */
const MAX_FIELD_LENGTH = 4096;
/** Length of text that is searched for secrets before it is cut, so that no cut leaves half a secret. */
const MAX_SCRUB_LENGTH = 16 * MAX_FIELD_LENGTH;
const MAX_FIELDS = 64;
const MAX_CAUSES = 5;
/** Bytes that may wait in the stream; further lines are dropped and counted. */
const MAX_WAITING = 4 * 1024 * 1024;
const GATHER_MS = 100;
const GATHER_LENGTH = 64 * 1024;

export function createLog(options: LogOptions): Log {
  // A closed pipe must not end the process.
  options.stream.on?.('error', () => {});
  return new LineLog(new LineWriter(options), {});
}

/** A log that writes nothing. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  often: () => {},
  flush: () => {},
  with: () => silentLog,
};

class LineLog implements Log {
  readonly #writer: LineWriter;
  readonly #fields: Fields;

  constructor(writer: LineWriter, fields: Fields) {
    this.#writer = writer;
    this.#fields = fields;
  }

  debug(event: string, fields?: Fields): void {
    this.#writer.write('debug', event, this.#fields, fields);
  }

  info(event: string, fields?: Fields): void {
    this.#writer.write('info', event, this.#fields, fields);
  }

  warn(event: string, fields?: Fields): void {
    this.#writer.write('warn', event, this.#fields, fields);
  }

  error(event: string, fields?: Fields): void {
    this.#writer.write('error', event, this.#fields, fields);
  }

  often(level: Level, event: string, fields: Readonly<Record<string, string | number | boolean | undefined>>): void {
    this.#writer.gather(level, event, this.#fields, fields);
  }

  flush(): void {
    this.#writer.flush();
  }

  with(fields: Fields): Log {
    return new LineLog(this.#writer, { ...this.#fields, ...fields });
  }
}

class LineWriter {
  readonly #stream: LogStream;
  readonly #rank: number;
  readonly #clock: Clock;
  #dropped = 0;
  /** Lines that are not written yet. */
  #gathered = '';
  #timer: Timer | undefined;
  #gatherEnds = false;

  constructor({ stream, level = 'info', clock = systemClock }: LogOptions) {
    this.#stream = stream;
    this.#rank = RANK[level];
    this.#clock = clock;
  }

  gather(level: Level, event: string, common: Fields, fields: Fields): void {
    if (RANK[level] < this.#rank) return;
    if (this.#stream.isTTY || this.#dropped > 0 || (this.#stream.writableLength ?? 0) > MAX_WAITING) {
      this.write(level, event, common, fields);
      return;
    }
    this.#gathered += `${plainLine(new Date(this.#clock.now()).toISOString(), level, event, common, fields)}\n`;
    if (this.#gathered.length >= GATHER_LENGTH) this.flush();
    else if (!this.#gatherEnds) this.#endSoon();
  }

  flush(): void {
    if (this.#gathered === '') return;
    const lines = this.#gathered;
    this.#gathered = '';
    try {
      this.#stream.write(scrub(lines));
    } catch {
      // There is nowhere left to report it.
    }
  }

  #endSoon(): void {
    this.#gatherEnds = true;
    if (this.#timer !== undefined) {
      this.#timer.refresh();
      return;
    }
    this.#timer = this.#clock.timer(GATHER_MS, () => {
      this.#gatherEnds = false;
      this.flush();
    });
  }

  write(level: Level, event: string, common: Fields, fields: Fields | undefined): void {
    if (RANK[level] < this.#rank) return;
    try {
      if ((this.#stream.writableLength ?? 0) > MAX_WAITING) {
        this.#dropped += 1;
        return;
      }
      this.flush();
      const time = new Date(this.#clock.now()).toISOString();
      const all: Fields = { ...common, ...fields };
      if (this.#dropped > 0) all['dropped_lines'] = this.#dropped;
      const line = this.#stream.isTTY ? readableLine(time, level, event, all) : jsonLine(time, level, event, all);
      this.#stream.write(`${scrub(line)}\n`);
      this.#dropped = 0;
    } catch {
      // There is nowhere left to report it.
    }
  }
}

function jsonLine(time: string, level: Level, event: string, fields: Fields): string {
  let line = `{"time":"${time}","level":"${level}","event":${JSON.stringify(bounded(event))}`;
  for (const [key, value] of Object.entries(fields).slice(0, MAX_FIELDS)) {
    if (value !== undefined) line += `,${JSON.stringify(bounded(key))}:${encodeField(value)}`;
  }
  return `${line}}`;
}

/** Like `jsonLine`, for scalars; secrets are removed when the line is written. */
function plainLine(time: string, level: Level, event: string, common: Fields, fields: Fields): string {
  let line = `{"time":"${time}","level":"${level}","event":${quoted(event)}`;
  for (const all of [common, fields]) {
    for (const key in all) {
      const value = all[key];
      if (value === undefined) continue;
      line += `,"${key}":${typeof value === 'string' ? quoted(value) : encodeField(value)}`;
    }
  }
  return `${line}}`;
}

function quoted(text: string): string {
  if (text.length > MAX_FIELD_LENGTH) return JSON.stringify(bounded(text));
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** Printable ASCII without what JSON escapes. */
const PLAIN = /^[ !#-[\]-~]*$/;

function readableLine(time: string, level: Level, event: string, fields: Fields): string {
  let line = `${time.slice(11, 23)} ${level.padEnd(5)} ${printable(bounded(event))}`;
  let details = '';
  for (const [key, value] of Object.entries(fields).slice(0, MAX_FIELDS)) {
    if (value === undefined) continue;
    if (value instanceof Error) {
      details += `\n    ${printable(bounded(describeError(value)), true).replaceAll('\n', '\n    ')}`;
    } else {
      const text = typeof value === 'string' ? bounded(value) : encodeField(value);
      line += ` ${printable(bounded(key))}=${/^[\w./:@+-]+$/.test(text) || typeof value !== 'string' ? printable(text) : printable(JSON.stringify(text))}`;
    }
  }
  return line + details;
}

/** A value as JSON text, bounded; never throws. */
function encodeField(value: unknown): string {
  try {
    if (typeof value === 'string') return JSON.stringify(bounded(value));
    if (typeof value === 'number' && Number.isFinite(value)) return String(value);
    if (typeof value === 'bigint') return JSON.stringify(String(value));
    if (value instanceof Error) return JSON.stringify(bounded(describeError(value)));
    const json = JSON.stringify(value, encodeInside) ?? JSON.stringify(String(value));
    return json.length <= MAX_FIELD_LENGTH ? json : JSON.stringify(bounded(json));
  } catch {
    return '"[unprintable]"';
  }
}

function encodeInside(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  // Here as well as in the finished line, where nested texts are escaped twice.
  if (typeof value === 'string') return bounded(value);
  return value instanceof Error ? bounded(describeError(value)) : value;
}

/** The stack of an error and of its causes. */
function describeError(error: Error): string {
  let text = error.stack ?? String(error);
  let cause: unknown = error.cause;
  for (let count = 0; cause !== undefined && cause !== null && count < MAX_CAUSES; count += 1) {
    text += `\ncaused by: ${cause instanceof Error ? (cause.stack ?? String(cause)) : String(cause)}`;
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return text;
}

/** Scrubbed, then cut. */
function bounded(text: string): string {
  const clean = scrub(text.length > MAX_SCRUB_LENGTH ? text.slice(0, MAX_SCRUB_LENGTH) : text);
  return clean.length <= MAX_FIELD_LENGTH ? clean.toWellFormed() : `${cut(clean, MAX_FIELD_LENGTH)}...`;
}

/** Control characters, which could forge lines or drive the terminal, as escapes. */
function printable(text: string, keepsLines = false): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  return text.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g, (char) =>
    keepsLines && char === '\n' ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const MASK = '[redacted]';
/** Shorter ones are not secrets, and would match other text: a local server's key is often `x`. */
const MIN_LENGTH = 4;

const secrets = new Set<string>();
const forms = new Set<string>();
/** Built when a text is first scrubbed after a secret was registered. */
let pattern: RegExp | undefined;

/** Registers a secret: from now on no log line and no scrubbed text shows it, plain, URL-encoded or in base64. */
export function redact(secret: string): void {
  if (secret.length < MIN_LENGTH || secrets.has(secret)) return;
  secrets.add(secret);
  for (const form of secretForms(secret)) forms.add(form);
  pattern = undefined;
}

/** `text` without registered secrets. */
export function scrub(text: string): string {
  if (forms.size === 0) return text;
  pattern ??= anyOf(forms);
  return text.replace(pattern, MASK);
}

function anyOf(texts: ReadonlySet<string>): RegExp {
  const longestFirst = [...texts].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((text) => RegExp.escape(text)).join('|'), 'g');
}
