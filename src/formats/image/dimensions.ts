/** Reads width and height from the header of a PNG, JPEG, WebP or GIF. */
import type { Pixels } from './size.ts';

/** A JPEG's size follows its metadata, which may be long. */
const LOOKED_AT = 256 * 1024;

/** @param data base64; undefined for other image types and damaged ones */
export function dimensionsOf(data: string): Pixels | undefined {
  const bytes = Buffer.from(data.slice(0, LOOKED_AT), 'base64');
  if (bytes.length < 30) return undefined;
  if (bytes.readUInt32BE(0) === 0x89504e47) return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  if (bytes.toString('latin1', 0, 3) === 'GIF') return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  if (bytes.toString('latin1', 8, 12) === 'WEBP') return webp(bytes);
  return bytes.readUInt16BE(0) === 0xffd8 ? jpeg(bytes) : undefined;
}

function webp(bytes: Buffer): Pixels | undefined {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8X':
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
    }
    case 'VP8 ':
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    default:
      return undefined;
  }
}

/** Finds the frame header by walking the markers. */
function jpeg(bytes: Buffer): Pixels | undefined {
  let at = 2;
  while (at + 9 < bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1]!;
    const frame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (frame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
