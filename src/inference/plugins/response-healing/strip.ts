/** Finds the JSON in a model's text: without its thinking, code fences and the prose around it. Pure, linear time. */

/** The most places at which a value may begin that are tried; prose rarely has brackets. */
const MAX_CANDIDATES = 8;
const THINKING = /^\s*<(think|thinking|reasoning)>/;
const FENCE = /```[ \t]*([a-zA-Z0-9_+-]*)[ \t]*\r?\n/g;

/** Texts that may be the answer's JSON, the most likely first. */
export function candidatesIn(text: string): string[] {
  const spoken = withoutThinking(text);
  const found = new Set<string>();
  for (const part of [...fenced(spoken), spoken]) {
    for (const candidate of valuesIn(part)) {
      found.add(candidate);
      if (found.size >= MAX_CANDIDATES) return [...found];
    }
  }
  return [...found];
}

/** Some models write their thinking into the answer, before it. */
function withoutThinking(text: string): string {
  const opened = THINKING.exec(text);
  if (opened === null) return text;
  const end = `</${opened[1]}>`;
  const at = text.indexOf(end);
  return at === -1 ? text : text.slice(at + end.length);
}

/** The contents of code fences. The last one may be unclosed. */
function fenced(text: string): string[] {
  const contents: string[] = [];
  FENCE.lastIndex = 0;
  for (let open = FENCE.exec(text); open !== null && contents.length < MAX_CANDIDATES; open = FENCE.exec(text)) {
    const start = FENCE.lastIndex;
    const close = text.indexOf('```', start);
    contents.push(text.slice(start, close === -1 ? undefined : close));
    if (close === -1) break;
    FENCE.lastIndex = close + 3;
  }
  return contents;
}

/** Objects and arrays in the text, each up to its closing bracket, or to the end if it is cut. */
function valuesIn(text: string): string[] {
  const values: string[] = [];
  let at = nextOpening(text, 0);
  while (at !== -1 && values.length < MAX_CANDIDATES) {
    const end = closingOf(text, at);
    values.push(text.slice(at, end).trimEnd());
    if (end === undefined) break;
    at = nextOpening(text, end);
  }
  return values;
}

function nextOpening(text: string, from: number): number {
  for (let at = from; at < text.length; at++) if (text[at] === '{' || text[at] === '[') return at;
  return -1;
}

/** The position after the bracket that closes the one at `start`; undefined if none does. Skips strings. */
function closingOf(text: string, start: number): number | undefined {
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (quoted) {
      if (character === '\\') at += 1;
      else if (character === '"') quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return undefined;
}
