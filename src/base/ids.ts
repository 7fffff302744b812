/** Identifiers. UUIDv7 for rows, so that they sort by creation; prefixed ids where the wire shows them. */
import { randomFillSync } from 'node:crypto';

/** RFC 9562 UUID version 7 for the given wall time in milliseconds. */
export function uuidv7(nowMs: number): string {
  return written(uuid, UUID_PLACES, nowMs);
}

/** A pool of random bytes: requesting a few bytes at a time would cost more than everything else here. */
const pool = Buffer.alloc(4096);
const BYTES = 10;
let used = pool.length;

const DIGITS = Buffer.from('0123456789abcdef');
const TIME_DIGITS = 12;
/** Offsets of the digits of a UUID between its dashes. */
const UUID_PLACES = [...'xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx'].flatMap((mark, at) => (mark === '-' ? [] : at));
const GENERATION_PLACES = UUID_PLACES.map((_, digit) => 'gen-'.length + digit);

const uuid = { bytes: Buffer.from('xxxxxxxx-xxxx-7xxx-xxxx-xxxxxxxxxxxx'), ms: -1 };
const generation = { bytes: Buffer.from('gen-xxxxxxxxxxxx7xxxxxxxxxxxxxxxxxxx'), ms: -1 };

/**
 * Builds a UUID from bytes instead of string pieces: a concatenated string would have to be flattened wherever it is
 * written.
 */
function written(template: typeof uuid, digitOffsets: readonly number[], nowMs: number): string {
  const { bytes } = template;
  // Ids are often made in bursts, and those of one millisecond share a prefix.
  if (template.ms !== nowMs) {
    template.ms = nowMs;
    let time = Math.floor(nowMs);
    for (let digit = TIME_DIGITS - 1; digit >= 0; digit -= 1) {
      bytes[digitOffsets[digit]!] = DIGITS[time % 16]!;
      time = Math.floor(time / 16);
    }
  }
  if (used + BYTES > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  // After the version digit, which is fixed; the first of these digits is skipped, and the fifth is the variant.
  for (let digit = 1; digit < 2 * BYTES; digit += 1) {
    const byte = pool[used + (digit >> 1)]!;
    const value = digit % 2 === 0 ? byte >> 4 : byte & 15;
    bytes[digitOffsets[TIME_DIGITS + digit]!] = DIGITS[digit === VARIANT_DIGIT ? (value & 3) | 8 : value]!;
  }
  used += BYTES;
  return bytes.toString('latin1');
}

const VARIANT_DIGIT = 4;

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether the text is a UUID of any version, in upper or lower case. Other texts must not reach a uuid column. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** A UUID as clients see it: 32 hexadecimal digits behind the prefix of its kind. */
export function prefixedId(prefix: string, id: string): string {
  return prefix + id.replaceAll('-', '');
}

/** The UUID of a prefixed id, in upper or lower case; undefined for any other text. */
export function uuidOf(prefix: string, text: string): string | undefined {
  if (!text.startsWith(prefix)) return undefined;
  const [, ...parts] = DIGIT_GROUPS.exec(text.slice(prefix.length).toLowerCase()) ?? [];
  return parts.length > 0 ? parts.join('-') : undefined;
}

const DIGIT_GROUPS = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/;

/** Id of one generation, `gen-` and 32 hexadecimal digits that sort by time. */
export function generationId(nowMs: number): string {
  return written(generation, GENERATION_PLACES, nowMs);
}
