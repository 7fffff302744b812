/** The worker thread that reads the text of Word documents (docx). Loads the parser on first use. */
import { inflateRawSync } from 'node:zlib';
import { answerOrders } from './order.ts';

export interface DocxOrder {
  id: number;
  bytes: Uint8Array;
  /** Of the unpacked document. */
  maxBytes: number;
  maxLength: number;
}

export type DocxFault = 'unreadable' | 'length';

/** `fault` is absent when the text was read. */
export interface DocxNews {
  id: number;
  text?: string;
  fault?: DocxFault;
}

const END_SIGNATURE = Buffer.from('PK\x05\x06', 'latin1');
const END_BYTES = 22;
const ENTRY_SIGNATURE = 0x02014b50;
const ENTRY_BYTES = 46;
const LOCAL_SIGNATURE = 0x04034b50;
const LOCAL_BYTES = 30;
const STORED = 0;
const DEFLATED = 8;

type Parser = typeof import('mammoth');

async function read({ id, bytes, maxBytes, maxLength }: DocxOrder, mammoth: Parser): Promise<DocxNews> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  try {
    if (!unpacksWithin(buffer, maxBytes)) return { id, fault: 'length' };
    const { value } = await mammoth.extractRawText({ buffer });
    return value.length > maxLength ? { id, fault: 'length' } : { id, text: value.trim() };
  } catch {
    return { id, fault: 'unreadable' };
  }
}

/**
 * Whether all entries of a zip together unpack to at most `most` bytes: the parser itself has no limit, and a zip of a few
 * kilobytes can unpack to gigabytes. (APPNOTE.TXT of PKWARE, 4.3.7, 4.3.12 and 4.3.16.) @throws Error for a zip with other features
 */
function unpacksWithin(zip: Buffer, most: number): boolean {
  const end = zip.lastIndexOf(END_SIGNATURE);
  if (end === -1 || end + END_BYTES > zip.length) throw new Error('the zip has no end');
  let at = zip.readUInt32LE(end + 16);
  // Bytes before the zip would shift all places that it names.
  if (at + zip.readUInt32LE(end + 12) !== end) throw new Error('the zip has a gap');
  let left = most;
  while (at < end) {
    if (zip.readUInt32LE(at) !== ENTRY_SIGNATURE) throw new Error('the zip has no whole directory');
    const [method, packed] = [zip.readUInt16LE(at + 10), zip.readUInt32LE(at + 20)];
    const local = zip.readUInt32LE(at + 42);
    if (zip.readUInt32LE(local) !== LOCAL_SIGNATURE) throw new Error('the zip lists an entry that it does not contain');
    const from = local + LOCAL_BYTES + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const size = unpackedSize(zip.subarray(from, from + packed), method, left);
    if (size === undefined || size > left) return false;
    left -= size;
    at += ENTRY_BYTES + zip.readUInt16LE(at + 28) + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  return true;
}

/** Undefined for more than `most`. */
function unpackedSize(content: Buffer, method: number, most: number): number | undefined {
  if (method === STORED) return content.length;
  if (method !== DEFLATED) throw new Error('the zip is packed in another way');
  try {
    return inflateRawSync(content, { maxOutputLength: most + 1 }).length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return undefined;
    throw error;
  }
}

answerOrders(async () => (await import('mammoth')).default, read);
