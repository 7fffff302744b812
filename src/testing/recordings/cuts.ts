/** Positions at which tests split streams: all hard ones, and reproducible random ones from a seed. */

/** Bytes up to which every position is tried. */
export const SHORT_STREAM_BYTES = 8 * 1024;
/** How far around an event's border and a multi-byte character every position is tried. */
const NEAR_BYTES = 32;
const SEEDED = 500;

/** Where streams are cut: all of a short stream; of a longer one all near hard places and 500 others. */
export function cutPositions(bytes: Buffer, seed: string): number[] {
  if (bytes.length <= SHORT_STREAM_BYTES) return everyPosition(bytes);
  const positions = new Set(seeded(seed, SEEDED, bytes.length));
  for (const hard of hardPlaces(bytes)) {
    const last = Math.min(bytes.length - 1, hard + NEAR_BYTES);
    for (let at = Math.max(1, hard - NEAR_BYTES); at <= last; at++) positions.add(at);
  }
  return [...positions].sort((a, b) => a - b);
}

export function everyPosition(bytes: Buffer): number[] {
  return Array.from({ length: bytes.length - 1 }, (_, at) => at + 1);
}

/** Behind the blank lines that end events, and the bytes of characters that have several. */
function hardPlaces(bytes: Buffer): number[] {
  return [...bytes.keys()].filter((at) => bytes[at]! >= 0x80 || isBorder(bytes, at));
}

/** The byte at this position is the first one of an event. */
export function isBorder(bytes: Buffer, at: number): boolean {
  const before = bytes.subarray(Math.max(0, at - 4), at).toString('latin1');
  return /(\r\n\r\n|\n\n|[^\n]\r\r)$/.test(before) && bytes[at] !== 10;
}

/** `count` positions within a text of so many bytes (neither its start nor its end), the same for the same seed. */
export function seeded(seed: string, count: number, length: number): number[] {
  const random = randomOf(seed);
  return Array.from({ length: Math.min(count, length - 1) }, () => 1 + Math.floor(random() * (length - 1)));
}

/** So many of a list, the same for the same seed. */
export function sampleOf<T>(list: readonly T[], count: number, seed: string): T[] {
  if (list.length <= count) return [...list];
  const random = randomOf(seed);
  return Array.from({ length: count }, () => list[Math.floor(random() * list.length)]!);
}

/** Numbers in [0, 1) by splitmix32. */
function randomOf(seed: string): () => number {
  let state = 0;
  for (let at = 0; at < seed.length; at++) state = (Math.imul(state, 31) + seed.charCodeAt(at)) | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** The same bytes in pieces of `cuts` bytes each, or cut at the positions `cuts`; no piece is empty. */
export function cutBytes(bytes: Buffer, cuts: number | readonly number[]): Buffer[] {
  const positions =
    typeof cuts === 'number' ? Array.from({ length: Math.ceil(bytes.length / cuts) }, (_, at) => at * cuts) : cuts;
  const inside = [...new Set(positions)].filter((at) => at > 0 && at < bytes.length).sort((a, b) => a - b);
  const edges = [0, ...inside, bytes.length];
  return edges
    .slice(1)
    .map((to, index) => bytes.subarray(edges[index], to))
    .filter((piece) => piece.length > 0);
}
