/**
 * Texts as arrays of numbers, which are read in a third of the time that a string takes. The arrays are used again for the
 * next text, so nothing may be kept of one, and whoever takes one clears it.
 */

/** Room behind a text, so that what follows a place can be read without asking where the text ends: zeros. */
const MARGIN = 8;
/** Most texts fit into this many units; for a longer one an array of its own is made. */
const ORDINARY = 32_768;

const byteRoom = new Uint8Array(ORDINARY + MARGIN);
const byteRoomBuffer = Buffer.from(byteRoom.buffer);
const unitRoom = new Uint16Array(ORDINARY + MARGIN);
const unitRoomBuffer = Buffer.from(unitRoom.buffer);

/** Beyond ASCII a unit is one of 128 numbers, by its last seven bits. */
export function byteOf(unit: number): number {
  return unit < 128 ? unit : 128 | (unit & 127);
}

/** Whether all of a text is ASCII. */
export function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

/** Behind the character that stands at a place. */
export function nextAt(text: string, at: number): number {
  return at + (text.codePointAt(at)! > 0xffff ? 2 : 1);
}

/** UTF-16 units of a text, with zeros behind it. */
export function unitsOf(text: string): Uint16Array {
  if (text.length <= ORDINARY) {
    unitRoomBuffer.write(text, 'utf16le');
    return unitRoom;
  }
  const units = new Uint16Array(text.length + MARGIN);
  Buffer.from(units.buffer).write(text, 'utf16le');
  return units;
}

/** Each unit of a text as `byteOf` has it, with zeros behind it. */
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

/** What customers write does not stay in memory for longer than it is looked at, and the next text finds zeros behind it. */
export function clear(array: Uint8Array | Uint16Array, length: number): void {
  array.fill(0, 0, length);
}
