/**
 * Diffs in OpenAI's format for patches (V4A): sections of lines that begin with a space (context), `-` or `+`. They have no line
 * numbers; `@@ text` says after which line the next section is.
 */

/** A faulty diff; the message is for the model. */
export class DiffError extends Error {}

interface Section {
  /** Lines after which it is, in their order. */
  anchors: string[];
  lines: { kind: ' ' | '-' | '+'; text: string }[];
  /** It is at the end of the file. */
  atEnd: boolean;
}

/** Each of them is searched for in the whole file. */
const MOST_SECTIONS = 64;
const END_OF_FILE = '*** End of File';
/** Some models write the envelope of whole patches, too. */
const ENVELOPE = /^\*\*\* (?:(?:Begin|End) Patch|(?:Add|Update) File: .*)$/;
/** The head of a section in unified diffs; its numbers are ignored. */
const NUMBERS = /^-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?/;

/** The content of a new file: every line begins with `+`. @throws DiffError */
export function created(diff: string): string {
  const lines = linesOf(diff).map((line, index) => {
    if (!line.startsWith('+')) throw new DiffError(`line ${index + 1} of the diff must begin with +`);
    return `${line.slice(1)}\n`;
  });
  return lines.join('');
}

/** The text with the changes of the diff. @throws DiffError */
export function patched(text: string, diff: string): string {
  const endsInNewline = text.endsWith('\n');
  const lines = text === '' ? [] : text.split('\n');
  if (endsInNewline) lines.pop();
  const eol = lines.length > 0 && lines.every((line) => line.endsWith('\r')) ? '\r' : '';
  const result: string[] = [];
  let at = 0;
  for (const section of sectionsOf(diff)) {
    let from = at;
    for (const anchor of section.anchors) from = found(lines, [anchor], from, 'the line after @@') + 1;
    const old = section.lines.flatMap(({ kind, text: line }) => (kind === '+' ? [] : line));
    const start = placeOf(lines, old, from, section.atEnd);
    result.push(...lines.slice(at, start));
    at = start;
    for (const { kind, text: line } of section.lines) {
      if (kind === '+') result.push(line + eol);
      // The file's own line: it may differ in white space.
      else if (kind === ' ') result.push(lines[at++]!);
      else at += 1;
    }
  }
  result.push(...lines.slice(at));
  return result.join('\n') + (result.length > 0 && (endsInNewline || text === '') ? '\n' : '');
}

function linesOf(diff: string): string[] {
  const lines = diff.split('\n').map((line) => line.replace(/\r$/, ''));
  if (lines.at(-1) === '') lines.pop();
  return lines.filter((line) => !ENVELOPE.test(line));
}

function sectionsOf(diff: string): Section[] {
  const sections: Section[] = [];
  let open: Section | undefined;
  const begin = () => {
    open = { anchors: [], lines: [], atEnd: false };
    sections.push(open);
    return open;
  };
  for (const [index, line] of linesOf(diff).entries()) {
    if (line.startsWith('@@')) {
      const anchor = line.slice(2).replace(/^ /, '').replace(NUMBERS, '');
      const section = open === undefined || open.lines.length > 0 ? begin() : open;
      if (anchor.trim() !== '') section.anchors.push(anchor);
    } else if (line === END_OF_FILE) {
      if (open !== undefined) open.atEnd = true;
      open = undefined;
    } else {
      const kind = line === '' ? ' ' : line[0];
      if (kind !== ' ' && kind !== '-' && kind !== '+') {
        throw new DiffError(`line ${index + 1} of the diff must begin with a space, -, + or @@`);
      }
      (open ?? begin()).lines.push({ kind, text: line.slice(1) });
    }
  }
  const changes = sections.filter(({ lines }) => lines.some(({ kind }) => kind !== ' '));
  if (changes.length === 0) throw new DiffError('the diff changes nothing');
  if (changes.length > MOST_SECTIONS) throw new DiffError(`the diff has more than ${MOST_SECTIONS} sections`);
  return changes;
}

function placeOf(lines: readonly string[], old: readonly string[], from: number, atEnd: boolean): number {
  if (old.length === 0) return atEnd ? lines.length : from;
  const last = lines.length - old.length;
  if (atEnd && last >= from) {
    const isLast = WAYS.some((way) => old.every((line, index) => way(lines[last + index]!) === way(line)));
    if (isLast) return last;
  }
  return found(lines, old, from, 'the context');
}

/** How lines are normalized before they are compared, the strictest first. */
const WAYS: readonly ((line: string) => string)[] = [(line) => line, (line) => line.trimEnd(), (line) => line.trim()];

/** The first position at or after `from`. @throws DiffError */
function found(lines: readonly string[], old: readonly string[], from: number, what: string): number {
  for (const way of WAYS) {
    const place = firstPlace(lines.map(way), old.map(way), from);
    if (place !== undefined) return place;
  }
  const shown = old.slice(0, SHOWN_LINES).join('\n');
  throw new DiffError(`${what} is not in the file after line ${from}: ${JSON.stringify(shown)}`);
}

const SHOWN_LINES = 5;

/** By Knuth, Morris and Pratt: repeated lines must not make it slow. */
function firstPlace(lines: readonly string[], old: readonly string[], from: number): number | undefined {
  /** The failure function: for each prefix, the length of its longest proper prefix that is also its suffix. */
  const shorter = [0, 0];
  for (let length = 1; length < old.length; length += 1) {
    let match = shorter[length]!;
    while (match > 0 && old[match] !== old[length]) match = shorter[match]!;
    shorter.push(old[match] === old[length] ? match + 1 : 0);
  }
  let match = 0;
  for (let at = from; at < lines.length; at += 1) {
    while (match > 0 && old[match] !== lines[at]) match = shorter[match]!;
    if (old[match] === lines[at]) match += 1;
    if (match === old.length) return at - match + 1;
  }
  return undefined;
}
