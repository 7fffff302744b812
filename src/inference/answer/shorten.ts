/** Shortens a value that is too large for the log: long texts lose their middle, then a list its beginning. Pure. */
import { stringifyJson } from '../../base/json.ts';

/** Texts up to this length stay whole as long as something else can be cut. */
const SHORT_TEXT = 2_048;

/** @param maxLength UTF-16 units of the value's JSON, roughly */
export function shortened(value: unknown, maxLength: number): unknown {
  if (typeof value === 'string') return value.length <= maxLength ? value : cut(value, Math.max(maxLength, 16));
  const shorter = mapTexts(value, (text) => (text.length > SHORT_TEXT ? cut(text, SHORT_TEXT) : text));
  if (!Array.isArray(shorter)) return shorter;
  let left = maxLength;
  let from = shorter.length;
  while (from > 0) {
    left -= stringifyJson(shorter[from - 1]).length + 1;
    if (left < 0) break;
    from -= 1;
  }
  if (from === 0) return shorter;
  return [{ role: 'system', content: `[${from} earlier messages are left out]` }, ...shorter.slice(from)];
}

/** Keeps the beginning and the end, with a note on what is missing between them; never half a character. */
function cut(text: string, maxLength: number): string {
  const half = Math.floor(maxLength / 2);
  const [head, tail] = [text.slice(0, half).toWellFormed(), text.slice(-half).toWellFormed()];
  return `${head}[${text.length - 2 * half} characters are left out]${tail}`;
}

function mapTexts(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, map));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, map)]));
}
