/** Identifiers. UUIDv7 for rows, so that they sort by creation; prefixed ids where the wire shows them. */
import { randomUUID } from 'node:crypto';

/** RFC 9562 UUID version 7 for the given wall time in milliseconds. */
export function uuidv7(nowMs: number): string {
  // randomUUID keeps a pool of entropy and so costs a tenth of randomBytes; its version nibble is replaced.
  return `${timePrefix(nowMs)}${randomUUID().slice(15)}`;
}

let prefixMs = -1;
let prefix = '';

/** `tttttttt-tttt-7`; ids are often made in bursts, and a millisecond's are the same. */
function timePrefix(nowMs: number): string {
  if (nowMs !== prefixMs) {
    const time = nowMs.toString(16).padStart(12, '0');
    prefixMs = nowMs;
    prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`;
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
  return `gen-${uuidv7(nowMs).replaceAll('-', '')}`;
}
