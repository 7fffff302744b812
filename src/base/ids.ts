/** Identifiers. UUIDv7 for rows, so that they sort by creation; prefixed ids where the wire shows them. */
import { randomUUID } from 'node:crypto';

/** RFC 9562 UUID version 7 for the given wall time in milliseconds. */
export function uuidv7(nowMs: number): string {
  const time = nowMs.toString(16).padStart(12, '0');
  // randomUUID keeps a pool of entropy and so costs a tenth of randomBytes; its version nibble is replaced.
  const random = randomUUID();
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(15)}`;
}

/** Id of one generation, `gen-` and 32 hexadecimal digits that sort by time (wire/common.md, "Ids"). */
export function generationId(nowMs: number): string {
  return `gen-${uuidv7(nowMs).replaceAll('-', '')}`;
}
