/** The headers of Google's resumable protocol: what a request wants of an upload. */
import type { IncomingHttpHeaders } from 'node:http';
import path from 'node:path';
import { hasAtMost } from '../../base/characters.ts';
import { GatewayError, invalidField } from '../../base/errors.ts';
import { type Fields, fieldsOf, nonEmptyText } from '../../formats/conversation/fields.ts';
import { checkFilename } from '../filename.ts';

/** Of one request to an upload. */
interface Command {
  kind: 'upload' | 'query' | 'cancel';
  /** The file ends with this request. */
  finalize: boolean;
}

/** What the request that starts an upload says of the file. */
export interface Announced {
  filename: string;
  displayName: string | null;
  /** Undefined: unknown. */
  bytes: number | undefined;
}

const DIGITS = /^\d{1,15}$/;
const LONGEST_DISPLAY_NAME = 512;
const FALLBACK_NAME = 'file';

/** File name extensions of the accepted types, for files whose name has none. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'application/pdf': '.pdf',
  'image/png': '.png',
  'image/jpeg': '.jpg',
  'image/gif': '.gif',
  'image/webp': '.webp',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': '.docx',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': '.xlsx',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': '.pptx',
  'audio/mpeg': '.mp3',
  'audio/mp3': '.mp3',
  'audio/wav': '.wav',
  'audio/x-wav': '.wav',
  'audio/flac': '.flac',
  'audio/ogg': '.ogg',
  'application/json': '.json',
  'application/x-ndjson': '.jsonl',
  'application/jsonl': '.jsonl',
  'text/csv': '.csv',
  'text/markdown': '.md',
  'text/md': '.md',
  'text/plain': '.txt',
};

/** @throws GatewayError 400 naming the header */
export function commandOf(headers: IncomingHttpHeaders): Command {
  const words = wordsOf(headers);
  if (words === 'query' || words === 'cancel') return { kind: words, finalize: false };
  if (words === 'upload') return { kind: 'upload', finalize: false };
  if (words === 'finalize' || words === 'upload,finalize') return { kind: 'upload', finalize: true };
  throw badHeader('x-goog-upload-command', 'must be upload, query, cancel, finalize, or upload and finalize');
}

/** @throws GatewayError 400 naming the header */
export function offsetOf(headers: IncomingHttpHeaders, fallback: number | undefined): number {
  const offset = digitsOf(headers, 'x-goog-upload-offset') ?? fallback;
  if (offset === undefined) throw badHeader('x-goog-upload-offset', 'is missing');
  return offset;
}

/** @param body `{file}`, or undefined @throws GatewayError 400 naming the header or the path of the field */
export function announcedIn(headers: IncomingHttpHeaders, body: unknown): Announced {
  if (headers['x-goog-upload-protocol'] !== 'resumable') {
    throw badHeader('x-goog-upload-protocol', 'must be resumable: no other protocol of uploads is supported');
  }
  if (wordsOf(headers) !== 'start') throw badHeader('x-goog-upload-command', 'must be start for a new upload');
  const file = fieldsOf(fieldsOf(body)['file']);
  if (nonEmptyText(file['name']) !== undefined) {
    throw invalidField('file.name', 'cannot be chosen: the gateway names files; use displayName');
  }
  const displayName = displayNameIn(file);
  const mimeType = headers['x-goog-upload-header-content-type'] ?? textMember(file, 'mimeType') ?? '';
  // Node.js reads headers as Latin-1.
  const given = Buffer.from(String(headers['x-goog-upload-file-name'] ?? ''), 'latin1').toString();
  return {
    filename: filenameOf(given, displayName, String(mimeType)),
    displayName,
    bytes: digitsOf(headers, 'x-goog-upload-header-content-length'),
  };
}

/** In lower case, without spaces. */
function wordsOf(headers: IncomingHttpHeaders): string {
  return String(headers['x-goog-upload-command'] ?? '')
    .toLowerCase()
    .replaceAll(/\s+/g, '');
}

function displayNameIn(file: Fields): string | null {
  const name = textMember(file, 'displayName');
  if (name === undefined || name === '') return null;
  if (!hasAtMost(name, LONGEST_DISPLAY_NAME)) {
    throw invalidField('file.displayName', `must have at most ${LONGEST_DISPLAY_NAME} characters`);
  }
  return name;
}

/** @throws GatewayError 400 */
function textMember(file: Fields, name: 'displayName' | 'mimeType'): string | undefined {
  const value = file[name] ?? file[name.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`)] ?? undefined;
  if (value !== undefined && typeof value !== 'string') throw invalidField(`file.${name}`, 'must be a string');
  return value;
}

/** The first of the names that can be a filename, with an extension for its type. */
function filenameOf(given: string, displayName: string | null, mimeType: string): string {
  const extension = EXTENSIONS[mimeType.split(';', 1)[0]!.trim().toLowerCase()] ?? '';
  for (const name of [given, displayName ?? '', FALLBACK_NAME]) {
    const whole = path.extname(name) === '' ? name + extension : name;
    if (name !== '' && isFilename(whole)) return whole;
  }
  return FALLBACK_NAME;
}

function isFilename(name: string): boolean {
  try {
    return checkFilename(name) === name;
  } catch {
    return false;
  }
}

function digitsOf(headers: IncomingHttpHeaders, name: string): number | undefined {
  const value = headers[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || !DIGITS.test(value)) throw badHeader(name, 'must be a number of bytes');
  return Number(value);
}

export function badHeader(name: string, problem: string): GatewayError {
  return new GatewayError('invalid_request', `the header ${name} ${problem}`);
}
