/** JSON lines of any length as they arrive, one line in memory at a time. */
import { scanMembers } from '../../base/json.ts';
import { type BatchedCall, BatchRefusal } from './contract.ts';

const LINE_END = 0x0a;
/** A response and what is around it. */
const LONGEST_LINE = 64 * 1024 * 1024;

/** @throws BatchRefusal when a line is too long */
export async function* linesOf(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of content) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, from)) {
      pieces.push(chunk.subarray(from, end));
      yield Buffer.concat(pieces);
      pieces = [];
      bytes = 0;
      from = end + 1;
    }
    if (from === chunk.length) continue;
    pieces.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > LONGEST_LINE) throw new BatchRefusal('a line of the results is too long', 400);
  }
  if (pieces.length > 0) yield Buffer.concat(pieces);
}

/** One JSON object of a line; its members are read on demand. */
interface LineObject {
  /** Null if absent. */
  member(key: string): unknown;
  bytes(key: string): Buffer | undefined;
}

/** Undefined for half a line or another value. */
export function objectOf(line: Buffer | undefined): LineObject | undefined {
  const text = line?.toString('latin1') ?? '';
  if (line === undefined || !isObject(text)) return undefined;
  const members = scanMembers(text);
  const bytes = (key: string) => {
    const found = members.find((each) => each.key === key);
    return found && line.subarray(found.valueStart, found.valueEnd);
  };
  return { bytes, member: (key) => JSON.parse(bytes(key)?.toString('utf8') ?? 'null') };
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** A line of a file of calls, as OpenAI and others have it. @param url of the call */
export function callLine(id: string, url: string, each: BatchedCall): Buffer {
  const call = spliced(
    ['custom_id', JSON.stringify(id)],
    ['method', '"POST"'],
    ['url', JSON.stringify(url)],
    ['body', oneLine(each)],
  );
  return Buffer.concat([call, Buffer.from('\n')]);
}

/** A JSON object of parts that are JSON already. */
export function spliced(...members: readonly (readonly [key: string, json: string | Buffer])[]): Buffer {
  const parts: Buffer[] = [];
  for (const [index, [key, json]] of members.entries()) {
    parts.push(Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(key)}:`), Buffer.from(json));
  }
  return Buffer.concat([...parts, Buffer.from('}')]);
}

/** The body of a call on one line: JSON may have line ends between its members, never within a text. */
export function oneLine({ body }: Pick<BatchedCall, 'body'>): Buffer {
  if (!body.includes(LINE_END) && !body.includes(0x0d)) return body;
  return Buffer.from(body.toString('latin1').replace(/[\r\n]+/g, ' '), 'latin1');
}
