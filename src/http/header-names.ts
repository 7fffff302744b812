/** Names of headers in lower case. Few distinct ones occur, and an interned string is found and compared faster. */

const lowerCaseNames = new Map<string, string>();
const MOST_NAMES = 256;
const LONGEST_NAME = 64;

export function lowerCase(name: string): string {
  const known = lowerCaseNames.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  if (lowerCaseNames.size < MOST_NAMES && name.length <= LONGEST_NAME) lowerCaseNames.set(name, lower);
  return lower;
}
