/**
 * Splits a text so that counting its tokens takes linear time. The tokenizer is quadratic in a run of letters, white
 * space or other signs, so longer runs are cut. Each cut counts as one more token, which keeps the sum an upper bound.
 */

/** Far longer than any word. */
const MAX_RUN_LENGTH = 128;
const LONG_RUNS = new RegExp(
  [
    `[\\p{L}\\p{M}]{${MAX_RUN_LENGTH + 1},}`,
    `\\s{${MAX_RUN_LENGTH + 1},}`,
    `[^\\s\\p{L}\\p{N}]{${MAX_RUN_LENGTH + 1},}`,
  ].join('|'),
  'gu',
);
/** Characters passed to the tokenizer at once. */
const PIECE = 64 * 1024;

/** @param count counts the tokens of a text, with special tokens as plain text */
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
    for (let at = 0; at < run.length; at += MAX_RUN_LENGTH) tokens += count(run.slice(at, at + MAX_RUN_LENGTH)) + 1;
    from = index + run.length;
  }
  return from < text.length ? tokens + count(text.slice(from)) : tokens;
}
