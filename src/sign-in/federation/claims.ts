/** Checks the claims of a subject token against a policy. No I/O. */
import type { ClaimRule } from '../../base/config.ts';

/** The first rule that the claims do not satisfy; undefined if they satisfy all. */
export function unmetRule(
  claims: Readonly<Record<string, unknown>>,
  rules: readonly ClaimRule[],
): ClaimRule | undefined {
  return rules.find(({ name, patterns }) => {
    const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
    return !patterns.some((pattern) => (Array.isArray(value) ? value : [value]).some((one) => fits(one, pattern)));
  });
}

function fits(value: unknown, pattern: string | number | boolean): boolean {
  if (typeof pattern !== 'string') return value === pattern;
  return typeof value === 'string' && fitsPattern(value, pattern);
}

/** `*` matches any characters, including none; all other characters match themselves. Linear in both lengths. */
export function fitsPattern(text: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let from = first.length;
  for (const piece of rest) {
    const at = text.indexOf(piece, from);
    if (at === -1 || at + piece.length > end) return false;
    from = at + piece.length;
  }
  return true;
}
