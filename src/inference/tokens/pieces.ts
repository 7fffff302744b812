/**
 * A text in pieces that a tokenizer gets through in linear time. Its merging is quadratic in a run of letters, of white
 * space or of other signs, so longer runs are cut; each cut counts as a token more, and the sum stays an upper bound.
 */

/** Far more than words have. */
const LONGEST_RUN = 128;
const LONG_RUNS = new RegExp(
  [`[\\p{L}\\p{M}]{${LONGEST_RUN + 1},}`, `\\s{${LONGEST_RUN + 1},}`, `[^\\s\\p{L}\\p{N}]{${LONGEST_RUN + 1},}`].join(
    '|',
  ),
  'gu',
);
/** Characters that are handed over at once. */
const PIECE = 64 * 1024;

/** @param count tokens of a text, whatever special tokens it spells */
export function countInPieces(text: string, count: (text: string) => number): number {
  let tokens = 0;
  for (let at = 0; at < text.length; at += PIECE)
    tokens += countPiece(text.slice(at, at + PIECE), count) + (at > 0 ? 1 : 0);
  return tokens;
}

function countPiece(text: string, count: (text: string) => number): number {
  let tokens = 0;
  let from = 0;
  for (const { index, 0: run } of text.matchAll(LONG_RUNS)) {
    if (index > from) tokens += count(text.slice(from, index)) + 1;
    for (let at = 0; at < run.length; at += LONGEST_RUN) tokens += count(run.slice(at, at + LONGEST_RUN)) + 1;
    from = index + run.length;
  }
  return from < text.length ? tokens + count(text.slice(from)) : tokens;
}
