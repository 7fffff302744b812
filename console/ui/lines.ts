/** Lists in text areas: one entry a line, or with commas between them. */

/** An empty text is null, which in most lists means all, or stays the empty list that it was, which means none. */
export function linesOrNull(text: string, before?: readonly unknown[] | null): string[] | null {
  const lines = text.split(/[\n,]/).flatMap((line) => line.trim() || []);
  return lines.length === 0 && before?.length !== 0 ? null : lines;
}

export function textOf(lines: readonly (string | number)[] | null | undefined): string {
  return (lines ?? []).join('\n');
}
