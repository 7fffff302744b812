/** Texts cut to a length, and limits in characters, as clients count them: code points, not UTF-16 units. */

export function hasAtMost(text: string, most: number): boolean {
  return text.length <= most || (text.length <= 2 * most && [...text].length <= most);
}

/**
 * The beginning of a text, of at most so many UTF-16 units. It does not end with half of a character; other halves become
 * U+FFFD, so that the text can be stored and sent.
 */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text.toWellFormed();
  return text.slice(0, isFirstHalf(text.charCodeAt(most - 1)) ? most - 1 : most).toWellFormed();
}

/** Of a surrogate pair. */
function isFirstHalf(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
