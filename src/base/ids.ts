/** Identifiers. UUIDv7 for rows, so that they sort by creation; prefixed ids where the wire shows them. */
import { randomFillSync } from 'node:crypto';

/** RFC 9562 UUID version 7 for the given wall time in milliseconds. */
export function uuidv7(nowMs: number): string {
  const time = timeDigits(nowMs);
  const digits = randomDigits();
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digits.slice(1, 4)}-${digits.slice(4, 8)}-${digits.slice(8)}`;
}

/** Random bytes that are used up piece by piece: asking for so few at a time would cost more than all the rest. */
const pool = Buffer.alloc(4096);
const BYTES = 10;
let used = pool.length;

/** Twenty random hexadecimal digits; the fifth is the variant of a UUID. */
function randomDigits(): string {
  if (used + BYTES > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const start = used;
  used += BYTES;
  pool[start + 2] = (pool[start + 2]! & 0x3f) | 0x80;
  return pool.toString('hex', start, used);
}

let prefixMs = -1;
let prefix = '';

/** Twelve hexadecimal digits; ids are often made in bursts, and a millisecond's are the same. */
function timeDigits(nowMs: number): string {
  if (nowMs !== prefixMs) {
    prefixMs = nowMs;
    prefix = nowMs.toString(16).padStart(12, '0');
  }
  return prefix;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether the text is a UUID of any version, in any case: what is none must not reach a column of that type. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** Id of one generation, `gen-` and 32 hexadecimal digits that sort by time (wire/common.md, "Ids"). */
export function generationId(nowMs: number): string {
  return `gen-${timeDigits(nowMs)}7${randomDigits().slice(1)}`;
}
