/** Office documents whose zip begins with large entries of something else: known by the directory at the end of the zip. */

const OFFICE = 'application/vnd.openxmlformats-officedocument.';
/** The folder of the document's parts. */
const TYPES: Readonly<Record<string, string>> = {
  'word/': `${OFFICE}wordprocessingml.document`,
  'xl/': `${OFFICE}spreadsheetml.sheet`,
  'ppt/': `${OFFICE}presentationml.presentation`,
};
const CONTENT_TYPES = '[Content_Types].xml';
/** Of documents with macros, which are of other types. */
const MACROS = 'vbaProject.bin';

/** About 15,000 entries. A document whose directory is longer is not recognized. */
const TAIL_BYTES = 1024 * 1024;
const END_SIGNATURE = Buffer.from('PK\x05\x06', 'latin1');
const END_BYTES = 22;
const ENTRY_SIGNATURE = 0x02014b50;
const ENTRY_BYTES = 46;

/** Keeps the last bytes of a stream. */
export class Tail {
  #chunks: Buffer[] = [];
  #bytes = 0;

  async *of(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of content) {
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
      while (this.#bytes - this.#chunks[0]!.length >= TAIL_BYTES) this.#bytes -= this.#chunks.shift()!.length;
      yield chunk;
    }
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}

/** The type of the Office document that a zip with this end is, if it is one. */
export function officeTypeOf(tail: Buffer): string | undefined {
  const names = entryNames(tail);
  if (!names.includes(CONTENT_TYPES) || names.some((name) => name.endsWith(MACROS))) return undefined;
  const folder = Object.keys(TYPES).find((each) => names.some((name) => name.startsWith(each)));
  return folder === undefined ? undefined : TYPES[folder];
}

/** Names in the central directory (APPNOTE.TXT of PKWARE, 4.3.12 and 4.3.16); none if it is not whole. */
function entryNames(tail: Buffer): string[] {
  const end = tail.lastIndexOf(END_SIGNATURE);
  if (end === -1 || end + END_BYTES > tail.length) return [];
  const names: string[] = [];
  let at = end - tail.readUInt32LE(end + 12);
  if (at < 0) return [];
  while (at + ENTRY_BYTES <= end && tail.readUInt32LE(at) === ENTRY_SIGNATURE) {
    const nameBytes = tail.readUInt16LE(at + 28);
    names.push(tail.toString('utf8', at + ENTRY_BYTES, at + ENTRY_BYTES + nameBytes));
    at += ENTRY_BYTES + nameBytes + tail.readUInt16LE(at + 30) + tail.readUInt16LE(at + 32);
  }
  return names;
}
