/**
 * Detects media types from bytes: labels may be wrong (BerriAI/litellm#34462, openai/openai-agents-js#722,
 * BerriAI/litellm#9798).
 */
import type { Source } from './conversation.ts';
import { Uncarried } from './losses.ts';

const DATA_URL = /^data:([^;,]*)((?:;[^;,]*)*),/i;

/** Media types of documents, with the file name extensions that services tell them by. */
export const DOCUMENT_FORMATS = new Map([
  ['application/pdf', 'pdf'],
  ['text/csv', 'csv'],
  ['application/msword', 'doc'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'docx'],
  ['application/vnd.ms-excel', 'xls'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xlsx'],
  ['text/html', 'html'],
  ['text/markdown', 'md'],
  ['text/plain', 'txt'],
]);

/** A name for a document that came without one, for services that tell documents by their names. */
export function documentName(mediaType: string): string {
  return `document.${DOCUMENT_FORMATS.get(mediaType.toLowerCase()) ?? 'pdf'}`;
}

/** The image type given by the first bytes, if recognized; `data` is base64. */
export function sniffImage(data: string): string | undefined {
  if (data.startsWith('/9j/')) return 'image/jpeg';
  if (data.startsWith('iVBORw0KGgo')) return 'image/png';
  if (data.startsWith('R0lGOD')) return 'image/gif';
  const head = Buffer.from(data.slice(0, 24), 'base64').toString('latin1');
  if (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP') return 'image/webp';
  if (head.startsWith('BM') && head.slice(6, 10) === '\0\0\0\0') return 'image/bmp';
  if (head.startsWith('II*\0') || head.startsWith('MM\0*')) return 'image/tiff';
  return undefined;
}

/** Image types recognizable from their first bytes. */
const KNOWN_IMAGE = /^image\/(png|jpe?g|gif|webp)$/i;
/** In base64 characters: shorter data may not hold the whole signature. */
const SHORTEST_HEAD = 24;
/** Enough for a signature with line breaks or percent-encoding in it. */
const HEAD = 256;
/** Both alphabets, with line breaks (RFC 2045) and percent-encoding (RFC 2397). */
const BASE64 = /^[A-Za-z0-9+/_=\s%-]*$/;
const UNLIKE_PLAIN = /[^A-Za-z0-9+/=]/;

/** Judged by both ends of the data, however long it is. */
export function base64Fault(data: string): string | undefined {
  return BASE64.test(data.slice(0, HEAD)) && BASE64.test(data.slice(-HEAD)) ? undefined : 'is not base64';
}

/** Why no service could decode the image, judged by its first bytes; undefined when they look valid. */
export function imageFault(mediaType: string, data: string): string | undefined {
  const unreadable = base64Fault(data);
  if (unreadable !== undefined || !KNOWN_IMAGE.test(mediaType)) return unreadable;
  const given = data.trimStart().slice(0, HEAD);
  if (given === '') return 'has no data';
  const head = joined(given);
  if (head.length < SHORTEST_HEAD || sniffImage(head) !== undefined) return undefined;
  // HEIC and AVIF, which cameras label as JPEG: some services decode them.
  const box = Buffer.from(head.slice(0, 24), 'base64').toString('latin1').slice(4, 8);
  return box === 'ftyp' ? undefined : 'is not the data of an image';
}

/** The same for a `data:` URL of any medium; undefined for any other URL. */
export function dataUrlFault(url: string): string | undefined {
  const match = DATA_URL.exec(url.slice(0, 256));
  if (!match || !/;base64/i.test(match[2] ?? '')) return undefined;
  return imageFault(match[1] ?? '', url.slice(match[0].length));
}

/** Base64 in the standard alphabet without line breaks and percent-encoding; its end may be incomplete. */
function joined(data: string): string {
  const decoded = data.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  return decoded.replace(/\s+/g, '').replaceAll('-', '+').replaceAll('_', '/');
}

/**
 * Base64 as strict services decode it: standard alphabet, padded, no line breaks. Other text is returned unchanged, so
 * that its service refuses it.
 */
function strictBase64(data: string): string {
  if (data.length % 4 === 0 && !UNLIKE_PLAIN.test(data)) return data;
  if (!BASE64.test(data)) return data;
  return Buffer.from(joined(data), 'base64').toString('base64');
}

/** Decodes a `data:` URL and writes base64 as strict services decode it; returns other sources unchanged. */
export function withoutDataUrl(source: Source): Source {
  if (source.kind === 'bytes') {
    const data = strictBase64(source.data);
    return data === source.data ? source : { ...source, data };
  }
  if (source.kind !== 'url') return source;
  const match = DATA_URL.exec(source.url.slice(0, 256));
  if (!match) return source;
  const rest = source.url.slice(match[0].length);
  const data = /;base64/i.test(match[2] ?? '')
    ? strictBase64(rest)
    : Buffer.from(decodeText(rest), 'utf8').toString('base64');
  return { kind: 'bytes', mediaType: (match[1] || 'text/plain').toLowerCase(), data };
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Uncarried('data URL', 'its text is not percent-encoded');
  }
}
