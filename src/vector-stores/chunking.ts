/** Splits texts into overlapping chunks. A token is estimated as four bytes of UTF-8. */

export interface Chunking {
  /** The most tokens of a chunk. */
  tokens: number;
  /** Tokens that a chunk repeats of the one before; at most half of `tokens`. */
  overlap: number;
}

/** The meaning of `auto`. */
export const AUTO_CHUNKING: Chunking = { tokens: 800, overlap: 400 };

const BYTES_PER_TOKEN = 4;
/** A word with the white space after it. Longer ones are split. */
const PIECE = /\S{1,40}\s{0,40}|\s{1,40}/gu;

/** Chunks of white space alone are left out. */
export function* chunksOf(text: string, { tokens, overlap }: Chunking): Generator<string> {
  const [most, repeated] = [tokens * BYTES_PER_TOKEN, overlap * BYTES_PER_TOKEN];
  const pieces: { text: string; bytes: number }[] = [];
  let bytes = 0;
  let grew = false;
  const joined = () => pieces.map((piece) => piece.text).join('');
  for (const [piece] of text.matchAll(PIECE)) {
    const size = Buffer.byteLength(piece);
    if (grew && bytes + size > most) {
      const chunk = joined();
      if (chunk.trim() !== '') yield chunk;
      while (pieces.length > 0 && (bytes > repeated || bytes + size > most)) bytes -= pieces.shift()!.bytes;
    }
    pieces.push({ text: piece, bytes: size });
    bytes += size;
    grew = true;
  }
  const last = joined();
  if (grew && last.trim() !== '') yield last;
}
