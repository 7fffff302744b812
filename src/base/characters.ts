/** Limits of texts in characters, as clients count them: code points, not UTF-16 units. */

export function hasAtMost(text: string, most: number): boolean {
  return text.length <= most || (text.length <= 2 * most && [...text].length <= most);
}
