/** The PDFs and Word documents of a request: embedded, linked by URL, or stored and referenced. */
import { createHash } from 'node:crypto';
import { GatewayError, invalidField } from '../../../base/errors.ts';
import type { Fields } from '../../../formats/conversation/fields.ts';
import { eachPart, type FileWords } from '../../../formats/conversation/file-words.ts';
import type { Admission, ParsedFile } from '../../context.ts';
import type { PdfFailure } from '../../documents/pdf-reader.ts';
import { MediaFetcher } from '../../media/fetch-media.ts';
import type { AdmissionParts } from '../plugin.ts';

/** UTF-16 units of all files of a request. */
const MAX_LENGTH = 8 * 1024 * 1024;

interface Found {
  /** Parts that hold the same document are read once. */
  key: string;
  path: string;
  filename: string | undefined;
  load(): Promise<Buffer>;
}

/** A parsed file, its kind, and the key of the parts that held it. */
export interface ParsedPart {
  key: string;
  kind: 'pdf' | 'docx';
  file: ParsedFile;
}

/** Reads the texts of pages by OCR. @param count pages of the file. Rejects with GatewayError */
export type RecognizePages = (bytes: Buffer, count: number) => Promise<readonly string[]>;

interface Parsing {
  /** Texts of files that were parsed before, by their hashes. */
  known: ReadonlyMap<string, readonly string[]>;
  context: Admission;
  parts: AdmissionParts;
  /** Absent: the text is read from the file. */
  recognize: RecognizePages | undefined;
}

/** Rejects with GatewayError. */
export async function parseDocuments(
  root: unknown,
  words: FileWords,
  { known, context, parts, recognize }: Parsing,
): Promise<ParsedPart[]> {
  const parsed = new Map<string, ParsedPart>();
  let length = 0;
  for (const found of documentsIn(root, words, context, parts)) {
    if (parsed.has(found.key)) continue;
    if (parsed.size >= parts.limits.fetchedMedia) {
      throw invalidField(found.path, `and others bring more than ${parts.limits.fetchedMedia} files`);
    }
    const bytes = await found.load();
    const kind = kindOf(bytes);
    if (kind === undefined) continue;
    const hash = createHash('sha256').update(bytes).digest('hex');
    const texts = known.get(hash) ?? (await textsOf(kind, bytes, found.path, { parts, recognize }));
    length += texts.reduce((sum, text) => sum + text.length, 0);
    if (length > MAX_LENGTH) throw invalidField(found.path, `brings the files over ${MAX_LENGTH} characters of text`);
    parsed.set(found.key, { key: found.key, kind, file: { hash, filename: found.filename, texts } });
  }
  return [...parsed.values()];
}

/** Identifies the document of a part among all parts of the request; undefined if it has none that can be one. */
export function documentKey(part: Fields, words: FileWords, path: string): string | undefined {
  const document = words.document(part);
  if (document?.url !== undefined) return document.url;
  if (document?.data !== undefined) return isOther(document.data) ? undefined : document.data;
  const reference = words.read(part, path);
  return reference?.holds === 'document' || reference?.holds === 'medium' ? reference.id : undefined;
}

function documentsIn(root: unknown, words: FileWords, context: Admission, parts: AdmissionParts): Found[] {
  const all: Found[] = [];
  const fetcher = new MediaFetcher(parts.egress, parts.limits, (url) => all.find(({ key }) => key === url)!.path);
  eachPart(root, words, (part, path) => {
    const key = documentKey(part, words, path);
    if (key === undefined) return part;
    const { data, url, filename } = words.document(part) ?? {};
    const stored = context.files?.get(key);
    if (data !== undefined) all.push({ key, path, filename, load: async () => decoded(data, path, parts) });
    else if (url !== undefined) all.push({ key, path, filename, load: () => fetched(url, fetcher) });
    else if (stored !== undefined && stored.kind === 'file') {
      all.push({ key, path, filename: stored.file.filename, load: () => parts.files!.read(stored.file) });
    }
    return part;
  });
  return all;
}

async function fetched(url: string, fetcher: MediaFetcher): Promise<Buffer> {
  const media = await fetcher.all(new Map([[url, { kind: 'file', times: 1 }]]), new AbortController().signal);
  return media.get(url)!.bytes;
}

function decoded(data: string, path: string, { limits }: AdmissionParts): Buffer {
  const comma = data.startsWith('data:') ? data.indexOf(',') : -1;
  const bytes = Buffer.from(data.slice(comma + 1), 'base64');
  if (bytes.length > limits.fetchedMediumBytes) {
    const message = `${path} is larger than ${limits.fetchedMediumBytes} bytes`;
    throw new GatewayError('payload_too_large', message, { path });
  }
  return bytes;
}

const READ_TYPE =
  /^data:(?:application\/(?:pdf|octet-stream|vnd\.openxmlformats-officedocument\.wordprocessingml\.document))?[;,]/i;

/** A `data:` URL of another media type. */
function isOther(data: string): boolean {
  return data.startsWith('data:') && !READ_TYPE.test(data);
}

function kindOf(bytes: Buffer): 'pdf' | 'docx' | undefined {
  if (bytes.subarray(0, 1024).includes('%PDF-')) return 'pdf';
  const isZip = bytes.subarray(0, 4).toString('latin1') === 'PK\x03\x04';
  return isZip && bytes.includes('word/document.xml') ? 'docx' : undefined;
}

async function textsOf(
  kind: 'pdf' | 'docx',
  bytes: Buffer,
  path: string,
  { parts: { pdf, docx }, recognize }: Pick<Parsing, 'parts' | 'recognize'>,
): Promise<string[]> {
  if (kind === 'docx') {
    const read = await docx!.read(bytes);
    if ('fault' in read) throw refusal(read.fault, path, 'Word document');
    return [read.text];
  }
  const read = await pdf!.read(bytes);
  if ('fault' in read) throw refusal(read.fault, path, 'PDF');
  const pages = recognize === undefined ? read.pages : await recognize(bytes, read.pages.length);
  return pages.map((page, index) => `[Page ${index + 1}]\n${page.trim()}`);
}

const PROBLEMS: Readonly<Record<Exclude<PdfFailure, 'busy' | 'unavailable'>, string>> = {
  unreadable: 'that cannot be read',
  encrypted: 'that needs a password',
  pages: 'with too many pages',
  length: 'with too much text',
  slow: 'that takes too long to read',
};

function refusal(fault: PdfFailure, path: string, what: string): GatewayError {
  if (fault === 'unavailable') return new GatewayError('server', `the gateway cannot load its reader of ${what}s`);
  if (fault !== 'busy') return invalidField(path, `is a ${what} ${PROBLEMS[fault]}`);
  return new GatewayError('provider_overloaded', 'too many documents are being read', { retryAfterSeconds: 1 });
}
