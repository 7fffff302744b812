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

/** The shape that the first byte of content shows; undefined for any other byte and for white space alone. */
export function bodyShape(chunk: Buffer): BodyShape | undefined {
  for (const byte of chunk) {
    if (byte <= SPACE || BYTE_ORDER_MARK.has(byte)) continue;
    if (byte === OBJECT_START) return 'object';
    return EVENT_STARTS.has(byte) ? 'events' : undefined;
  }
  return undefined;
}
