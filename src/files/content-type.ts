/** What a file is, by its content: kinds that no client can do anything with are refused before they are stored. */

import path from 'node:path';
import { continued } from '../base/continued.ts';
import { GatewayError } from '../base/errors.ts';
import { officeTypeOf, Tail } from './office-zip.ts';

/** Enough for the signature of every kind, and for the first entries of most Office documents. */
const SAMPLE_BYTES = 64 * 1024;
const ZIP = 'application/zip';

const ACCEPTED = new Set([
  'application/pdf',
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  'audio/mpeg',
  'audio/wav',
  'audio/flac',
  'audio/x-flac',
  'audio/ogg',
]);

/** The file name extension decides which kind of text a file is. */
const TEXT_TYPES: Readonly<Record<string, string>> = {
  '.json': 'application/json',
  '.jsonl': 'application/x-ndjson',
  '.ndjson': 'application/x-ndjson',
  '.csv': 'text/csv',
  '.md': 'text/markdown',
  '.markdown': 'text/markdown',
};

const WHAT = 'must be a PDF, PNG, JPEG, GIF, WebP, DOCX, XLSX, PPTX, MP3, WAV, FLAC, OGG or UTF-8 text';

interface Typed {
  /** Once the content has been read to its end. */
  mimeType(): string;
  /** The same content. Rejects with GatewayError 400 when its kind is not accepted after all. */
  content: AsyncIterable<Buffer>;
}

/** Reads the beginning of `content`. @throws GatewayError 400 for an empty file and for a kind that is not accepted */
export async function typed(content: AsyncIterable<Buffer>, filename: string): Promise<Typed> {
  const chunks = content[Symbol.asyncIterator]();
  const begun: Buffer[] = [];
  let bytes = 0;
  while (bytes < SAMPLE_BYTES) {
    const next = await chunks.next();
    if (next.done) break;
    begun.push(next.value);
    bytes += next.value.length;
  }
  if (bytes === 0) throw new GatewayError('invalid_request', 'file is empty', { path: 'file' });
  const whole = continued(begun, chunks);
  const sample = Buffer.concat(begun);
  const mimeType = await signed(sample);
  // The signature of a PDF decides, since a PDF may be text. Every other accepted kind has bytes that no text has, but a
  // text can begin like one of them: "GIF is a format", "BMW", "<?xml".
  if (mimeType !== undefined && (mimeType === 'application/pdf' || !isText(sample))) {
    if (ACCEPTED.has(mimeType)) return { mimeType: () => mimeType, content: whole };
    if (mimeType === ZIP) return officeDocument(whole);
    throw refused(`is ${mimeType}`);
  }
  const textType = TEXT_TYPES[path.extname(filename).toLowerCase()] ?? 'text/plain';
  return { mimeType: () => textType, content: checkedText(whole) };
}

/** A zip whose first entries say nothing about its kind. */
function officeDocument(content: AsyncIterable<Buffer>): Typed {
  let mimeType: string = ZIP;
  async function* checked(): AsyncGenerator<Buffer> {
    const tail = new Tail();
    yield* tail.of(content);
    const type = officeTypeOf(tail.bytes);
    if (type === undefined) throw refused(`is ${ZIP}`);
    mimeType = type;
  }
  return { mimeType: () => mimeType, content: checked() };
}

/** The type that the signature at the beginning of `sample` stands for, without parameters (Ogg has its codec there). */
async function signed(sample: Buffer): Promise<string | undefined> {
  const { fileTypeFromBuffer } = await import('file-type');
  const type = (await fileTypeFromBuffer(sample))?.mime.split(';')[0];
  return type === 'image/apng' ? 'image/png' : type;
}

/** Whether `sample` is the beginning of a UTF-8 text; its last character may be cut. */
function isText(sample: Buffer): boolean {
  try {
    return !new TextDecoder('utf-8', { fatal: true }).decode(sample, { stream: true }).includes('\0');
  } catch {
    return false;
  }
}

async function* checkedText(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (chunk?: Buffer) => {
    let text: string;
    try {
      text = chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch {
      throw refused('is neither');
    }
    if (text.includes('\0')) throw refused('is neither');
  };
  for await (const chunk of content) {
    decode(chunk);
    yield chunk;
  }
  decode();
}

function refused(is: string): GatewayError {
  return new GatewayError('invalid_request', `file ${WHAT}; it ${is}`, { path: 'file' });
}
