/** Replaces matches in texts by labels. */
import type { Match } from './filters.ts';
import type { Span } from './reading.ts';

/** Offsets at which consecutive texts meet. */
export function bordersOf(texts: readonly string[]): number[] {
  const borders: number[] = [];
  let at = 0;
  for (const text of texts.slice(0, -1)) {
    at += text.length;
    borders.push(at);
  }
  return borders;
}

export function crosses({ start, end }: Span, borders: readonly number[]): boolean {
  return borders.some((border) => start < border && border < end);
}

/** By start; at the same start the longest first. */
export function inOrder(a: Match, b: Match): number {
  return a.start - b.start || b.end - a.end || a.filter.rank - b.filter.rank;
}

/** Merged ranges to redact, in order and without overlaps. */
function rangesOf(matches: readonly Match[]): (Span & { label: string })[] {
  const sorted = matches.filter(({ filter }) => filter.action === 'redact').sort(inOrder);
  const merged: (Span & { label: string })[] = [];
  for (const { start, end, filter } of sorted) {
    const last = merged.at(-1);
    if (last !== undefined && start < last.end) last.end = Math.max(last.end, end);
    else merged.push({ start, end, label: filter.label });
  }
  return merged;
}

export function replaced(text: string, matches: readonly Match[]): string {
  if (matches.length === 0) return text;
  let result = '';
  let from = 0;
  for (const { start, end, label } of rangesOf(matches)) {
    result += text.slice(from, start) + label;
    from = end;
  }
  return from === 0 ? text : result + text.slice(from);
}

/** Writes the label where the match begins; the number of texts stays. */
export function replacedAcross(texts: readonly string[], matches: readonly Match[]): readonly string[] {
  const borders = bordersOf(texts);
  const crossing = rangesOf(matches.filter((match) => crosses(match, borders)));
  if (crossing.length === 0) return texts;
  let offset = 0;
  return texts.map((text) => {
    let result = '';
    let from = 0;
    for (const { start, end, label } of crossing) {
      const first = Math.max(start - offset, 0);
      const last = Math.min(end - offset, text.length);
      if (first >= last) continue;
      result += text.slice(from, first) + (start >= offset ? label : '');
      from = last;
    }
    offset += text.length;
    return result + text.slice(from);
  });
}
