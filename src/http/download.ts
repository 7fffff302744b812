/** Downloads of content that never changes: whole, one byte range (RFC 9110, section 14), or only its headers. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { GatewayError } from '../base/errors.ts';
import type { Exchange } from './operation.ts';

/** The first byte, and the one after the last. */
interface ByteRange {
  start: number;
  end: number;
}

interface Download {
  bytes: number;
  /** Of the content; quoted on the wire. */
  checksum: Buffer;
  /** In addition to those of the download itself. */
  headers: Record<string, string>;
  read(range?: ByteRange): Promise<AsyncIterable<Buffer>>;
}

type Conditions = Partial<Record<'range' | 'if-range' | 'if-none-match', string | undefined>>;

/** @throws GatewayError 416 for a range outside of the content */
export async function sendDownload(
  { headers: asked, response }: Pick<Exchange, 'headers' | 'response'>,
  { bytes, checksum, headers, read }: Download,
): Promise<void> {
  const tag = `"${checksum.toString('hex')}"`;
  const common = { ETag: tag, 'Accept-Ranges': 'bytes' };
  if (isKnown(asked['if-none-match'], tag)) {
    response.writeHead(304, common).end();
    return;
  }
  const isHead = response.req.method === 'HEAD';
  const range = isHead ? undefined : rangeOf(asked as Conditions, bytes, tag);
  const content = isHead ? undefined : await read(range);
  response.writeHead(range === undefined ? 200 : 206, {
    ...common,
    ...headers,
    'Content-Length': String(range === undefined ? bytes : range.end - range.start),
    ...(range && { 'Content-Range': `bytes ${range.start}-${range.end - 1}/${bytes}` }),
  });
  if (content === undefined) response.end();
  else await pipeline(Readable.from(content), response);
}

/**
 * The wanted part; undefined for all of it: also for several ranges, for what is not a range, and when the client knows
 * another version of the content.
 * @throws GatewayError 416
 */
export function rangeOf(asked: Conditions, bytes: number, tag: string): ByteRange | undefined {
  const [, first = '', last = ''] = /^\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(asked.range ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (asked['if-range'] !== undefined && asked['if-range'] !== tag) return undefined;
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined;
  const start = first === '' ? Math.max(0, bytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? bytes : Math.min(bytes, Number(last) + 1);
  if (start < end) return { start, end };
  throw new GatewayError('invalid_request', `the range is outside of the content, which has ${bytes} bytes`, {
    status: 416,
    headers: { 'Content-Range': `bytes */${bytes}` },
  });
}

/** Weak tags count, as RFC 9110 wants for this header. */
function isKnown(known: string | undefined, tag: string): boolean {
  if (known === undefined) return false;
  return known.split(',').some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === tag);
}
