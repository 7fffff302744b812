/**
 * The accepted regular expressions: JavaScript syntax without nested quantifiers and without constructs that cannot be
 * matched in linear time. Reports the position of the first fault.
 */

interface PatternFault {
  /** Offset into the pattern, in UTF-16 units. */
  position: number;
  problem: string;
}

interface Group {
  /** True if the group contains an unbounded repetition. */
  repeats: boolean;
}

/**
 * The first construct that Gatehouse refuses although an engine may accept it; undefined if none. The engine checks
 * syntax.
 */
export function forbiddenIn(pattern: string): PatternFault | undefined {
  const open: Group[] = [{ repeats: false }];
  /** The group that was just closed, to which a quantifier would apply. */
  let closed: Group | undefined;
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]!;
    if (character === '\\') {
      const next = pattern[at + 1] ?? '';
      if (/[1-9]/.test(next) || (next === 'k' && pattern[at + 2] === '<')) {
        return { position: at, problem: 'backreferences are not supported' };
      }
      at = escapeEnd(pattern, at);
      closed = undefined;
    } else if (character === '[') {
      at = classEnd(pattern, at);
      closed = undefined;
    } else if (character === '(') {
      const look = /^\(\?(?:[=!]|<[=!])/.exec(pattern.slice(at, at + 4))?.[0];
      if (look !== undefined) {
        const name = look.includes('<') ? 'lookbehind' : 'lookahead';
        return { position: at, problem: `${name} is not supported` };
      }
      if (pattern.startsWith('(?>', at)) return { position: at, problem: 'atomic groups are not supported' };
      open.push({ repeats: false });
      at = groupStart(pattern, at);
      closed = undefined;
    } else if (character === ')') {
      closed = open.length > 1 ? open.pop() : undefined;
      if (closed?.repeats) open.at(-1)!.repeats = true;
    } else {
      const quantifier = /^(?:[*+?]|\{\d+(?:,\d*)?\})/.exec(pattern.slice(at, at + 24))?.[0];
      if (quantifier === undefined) {
        closed = undefined;
        continue;
      }
      const repeats = quantifier === '*' || quantifier === '+' || /,/.test(quantifier);
      if (repeats && closed?.repeats) return { position: at, problem: 'nested quantifiers are not supported' };
      if (repeats) open.at(-1)!.repeats = true;
      at += quantifier.length - 1;
      if (pattern[at + 1] === '?') at += 1;
      else if (pattern[at + 1] === '+')
        return { position: at + 1, problem: 'possessive quantifiers are not supported' };
      closed = undefined;
    }
  }
  return undefined;
}

/** Offset of the last character of an escape such as `\u{1F600}` or `\p{L}`. */
function escapeEnd(pattern: string, at: number): number {
  const next = pattern[at + 1];
  if ((next === 'u' || next === 'p' || next === 'P' || next === 'x') && pattern[at + 2] === '{') {
    const end = pattern.indexOf('}', at);
    return end === -1 ? pattern.length : end;
  }
  return at + 1;
}

function classEnd(pattern: string, start: number): number {
  // In RE2 a bracket in first position is a member of the class.
  let at = start + (pattern[start + 1] === '^' ? 2 : 1);
  if (pattern[at] === ']') at += 1;
  for (; at < pattern.length && pattern[at] !== ']'; at++) {
    if (pattern[at] === '\\') at += 1;
    else if (pattern.startsWith('[:', at)) {
      const end = pattern.indexOf(':]', at + 2);
      if (end !== -1) at = end + 1;
    }
  }
  return at;
}

/** Offset of the last character of `(`, `(?:`, `(?i:`, `(?i)`, `(?<name>` or `(?P<name>`. */
function groupStart(pattern: string, at: number): number {
  if (pattern[at + 1] !== '?') return at;
  const head = /^\(\?(?:P?<[^>]*>|[a-zA-Z-]*:)/.exec(pattern.slice(at, at + 200))?.[0];
  if (head !== undefined) return at + head.length - 1;
  // Flags without a group: the closing parenthesis follows.
  const flags = /^\(\?[a-zA-Z-]*/.exec(pattern.slice(at, at + 50))?.[0];
  return at + (flags?.length ?? 1) - 1;
}
