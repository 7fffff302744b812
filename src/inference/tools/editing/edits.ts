/** The edits of a text that models know from Anthropic's text editor and memory tools. Pure. */
import { ToolError } from '../tool.ts';

/** Lines that the model gets of a file, at most. */
const MAX_SHOWN_LINES = 20_000;

/** @param range first and last line, from 1; a last line of -1 is the end. Absent: all. @throws ToolError */
export function numbered(path: string, text: string, range: readonly unknown[] | undefined): string {
  const lines = text.split('\n');
  const [from, to] = range === undefined ? [1, lines.length] : rangeOf(range, lines.length);
  const shown = lines.slice(from - 1, Math.min(to, from - 1 + MAX_SHOWN_LINES));
  const numberedLines = shown.map((line, index) => `${String(from + index).padStart(6)}\t${line}`);
  const left = to - from + 1 - shown.length;
  const end = left > 0 ? [`(${left} more lines; view them with view_range)`] : [];
  return [`Here's the content of ${path} with line numbers:`, ...numberedLines, ...end].join('\n');
}

function rangeOf(range: readonly unknown[], count: number): [number, number] {
  const [from, last] = range;
  const to = last === -1 ? count : last;
  const isValid =
    range.length === 2 && isWhole(from) && isWhole(to) && from >= 1 && from <= count && to >= from && to <= count;
  if (!isValid) throw new ToolError(`view_range must be two of the lines 1 to ${count}, the second may be -1`);
  return [from, to];
}

function isWhole(value: unknown): value is number {
  return Number.isInteger(value);
}

/** @throws ToolError */
export function replaced(path: string, text: string, from: string, to: string): string {
  if (from === '') throw new ToolError('old_str is empty');
  const at = text.indexOf(from);
  if (at === -1) {
    throw new ToolError(`No replacement was performed, old_str \`${short(from)}\` did not appear verbatim in ${path}.`);
  }
  if (text.includes(from, at + 1)) {
    throw new ToolError(
      `No replacement was performed. Multiple occurrences of old_str \`${short(from)}\` in lines: ` +
        `${linesWith(text, from).join(', ')}. Please ensure it is unique`,
    );
  }
  return text.slice(0, at) + to + text.slice(at + from.length);
}

/** Where the first occurrences begin. */
function linesWith(text: string, part: string): number[] {
  const lines: number[] = [];
  let line = 1;
  let seen = 0;
  for (let at = text.indexOf(part); at !== -1 && lines.length < 20; at = text.indexOf(part, at + 1)) {
    for (; seen < at; seen++) if (text[seen] === '\n') line += 1;
    lines.push(line);
  }
  return lines;
}

/** @param line the text is inserted after it; 0 for the beginning. @throws ToolError */
export function inserted(text: string, line: unknown, added: string): string {
  const lines = text.split('\n');
  const count = text === '' ? 0 : text.endsWith('\n') ? lines.length - 1 : lines.length;
  if (!isWhole(line) || line < 0 || line > count) {
    throw new ToolError(
      `Invalid \`insert_line\` parameter: ${String(line)}. It should be within the range of lines of the file: [0, ${count}]`,
    );
  }
  const before = lines
    .slice(0, line)
    .map((each) => `${each}\n`)
    .join('');
  const after = lines.slice(line).join('\n');
  return before + added + (added.endsWith('\n') || after === '' ? '' : '\n') + after;
}

function short(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}
