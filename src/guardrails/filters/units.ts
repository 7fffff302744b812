/**
 * Texts as arrays of numbers, which are read in a third of the time of a string. The arrays are reused for the next
 * text: keep no reference to one, and clear it after use.
 */

/** Zeros after a text, so that readers can look ahead without checking for its end. */
const MARGIN = 8;
/** Most texts have at most this many units; a longer one gets its own array. */
const ORDINARY = 32_768;

const byteRoom = new Uint8Array(ORDINARY + MARGIN);
const byteRoomBuffer = Buffer.from(byteRoom.buffer);
const unitRoom = new Uint16Array(ORDINARY + MARGIN);
const unitRoomBuffer = Buffer.from(unitRoom.buffer);

/** Maps a unit to a byte; units beyond ASCII share 128 values, by their last seven bits. */
export function byteOf(unit: number): number {
  return unit < 128 ? unit : 128 | (unit & 127);
}

/** True if the text is ASCII. */
export function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

/** Offset after the character at `at`. */
export function nextAt(text: string, at: number): number {
  return at + (text.codePointAt(at)! > 0xffff ? 2 : 1);
}

/** The UTF-16 units of a text, followed by zeros. */
export function unitsOf(text: string): Uint16Array {
  if (text.length <= ORDINARY) {
    unitRoomBuffer.write(text, 'utf16le');
    return unitRoom;
  }
  const units = new Uint16Array(text.length + MARGIN);
  Buffer.from(units.buffer).write(text, 'utf16le');
  return units;
}

/** Each unit of a text through `byteOf`, followed by zeros. */
export function bytesOf(text: string): Uint8Array {
  const ordinary = text.length <= ORDINARY;
  const bytes = ordinary ? byteRoom : new Uint8Array(text.length + MARGIN);
  if (isAscii(text)) {
    (ordinary ? byteRoomBuffer : Buffer.from(bytes.buffer)).write(text, 'latin1');
    return bytes;
  }
  const units = unitsOf(text);
  for (let at = 0; at < text.length; at++) bytes[at] = byteOf(units[at]!);
  clear(units, text.length);
  return bytes;
}

/** Customer text must not stay in memory after the search, and the next text needs zeros after it. */
export function clear(array: Uint8Array | Uint16Array, length: number): void {
  array.fill(0, 0, length);
}
