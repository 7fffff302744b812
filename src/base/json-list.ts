/** Offsets of the elements of a JSON array. The text must be a valid array; nothing here validates it. */
import { BACKSLASH, COMMA, QUOTE } from './json-characters.ts';

interface Span {
  start: number;
  end: number;
}

/**
 * @param count the number of elements, if known: a single one needs no search
 * @param from start of the list, or of white space before it; `to` is the offset after its end
 */
export function scanElements(text: string, count?: number, from = 0, to = text.length): Span[] {
  if (count === 1) return [onlyElement(text, from, to)];
  const spans: Span[] = [];
  let depth = 0;
  let start = -1;
  let end = -1;
  for (let at = text.indexOf('[', from) + 1; at > 0 && at < to; at += 1) {
    const code = text.charCodeAt(at);
    if (code <= 0x20) continue;
    if (depth === 0 && (code === COMMA || code === 0x5d)) {
      if (start !== -1) spans.push({ start, end });
      if (code !== COMMA) break;
      start = -1;
      continue;
    }
    if (start === -1) start = at;
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === 0x7b || code === 0x5b) depth += 1;
    else if (code === 0x7d || code === 0x5d) depth -= 1;
    end = at + 1;
  }
  return spans;
}

function onlyElement(text: string, from: number, to: number): Span {
  let start = text.indexOf('[', from) + 1;
  let end = text.lastIndexOf(']', to - 1);
  while (text.charCodeAt(start) <= 0x20) start += 1;
  while (text.charCodeAt(end - 1) <= 0x20) end -= 1;
  return { start, end };
}

/** Offset of the quote that closes the string opened at `from`. */
function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    at += code === BACKSLASH ? 2 : 1;
  }
  return at;
}
