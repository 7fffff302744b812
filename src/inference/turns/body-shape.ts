/** How the body of an upstream response is read: as its head announces, or as its first byte shows. */
import { isEventStream, isJson } from './reply-headers.ts';

/** @param streamed the request asked for a stream */
export function announcedMode(
  status: number,
  type: string | undefined,
  streamed: boolean,
): 'error' | 'stream' | 'whole' {
  if (status >= 300) return 'error';
  return (streamed && !isJson(type)) || isEventStream(type) ? 'stream' : 'whole';
}

type BodyShape = 'events' | 'object';

/** First bytes of event stream lines: `data`, `event`, `id`, `retry`, and a comment. None of them begins JSON. */
const EVENT_STARTS: ReadonlySet<number> = new Set(Buffer.from('deir:'));
const OBJECT_START = 0x7b;
const SPACE = 0x20;
const BYTE_ORDER_MARK: ReadonlySet<number> = new Set([0xef, 0xbb, 0xbf]);

/**
 * The shape that the first byte of content shows, undefined for any other byte, and the bytes from there on: white space
 * and a byte order mark before it mean nothing, and may arrive alone. Undefined if nothing of the content has arrived.
 */
export function contentOf(chunk: Buffer): { shape: BodyShape | undefined; bytes: Buffer } | undefined {
  const start = chunk.findIndex((byte) => byte > SPACE && !BYTE_ORDER_MARK.has(byte));
  if (start === -1) return undefined;
  const first = chunk[start]!;
  if (first === OBJECT_START) return { shape: 'object', bytes: chunk.subarray(start) };
  if (EVENT_STARTS.has(first)) return { shape: 'events', bytes: chunk.subarray(start) };
  return { shape: undefined, bytes: chunk };
}
