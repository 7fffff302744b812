/**
 * Finds the first fault of a JSON text with its offset and path. Slow path only: the fast path just detects that something is
 * wrong. Iterative and linear, whatever the text.
 */
import { cut } from './characters.ts';

interface Fault {
  /** Offset into the text; in bytes, since the text is Latin-1. */
  offset: number;
  /** `messages[3].content`; '' is the document itself. */
  path: string;
  /** Continues a sentence that starts with the path: `has the key "a" twice`. */
  problem: string;
  /** False if the text is valid JSON that the gateway refuses. */
  syntax: boolean;
}

interface Level {
  /** Keys seen so far; undefined for an array. */
  keys: Set<string> | undefined;
  key: string;
  index: number;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;
const IDENTIFIER = /^[A-Za-z_$][\w$-]*$/;
const MAX_PATH_LENGTH = 100;
const MAX_KEY_LENGTH = 64;

/** The first fault of `text`, which holds UTF-8 bytes as Latin-1 characters; undefined when it is a plain JSON object. */
export function findFault(text: string, maxDepth: number): Fault | undefined {
  return new Judge(text, maxDepth).judge();
}

class Judge {
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #levels: Level[] = [];
  #at = 0;

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
  }

  judge(): Fault | undefined {
    this.#skipSpace();
    if (this.#at === this.#text.length) return this.#syntaxFault('is empty');
    const first = this.#text[this.#at];
    if (first !== '{') {
      const wrong = this.#value() ?? this.#rest();
      return wrong ?? { offset: 0, path: '', problem: 'must be a JSON object', syntax: false };
    }
    return this.#value() ?? this.#rest();
  }

  #rest(): Fault | undefined {
    this.#skipSpace();
    return this.#at < this.#text.length ? this.#unexpected() : undefined;
  }

  /** Reads one value with everything in it. */
  #value(): Fault | undefined {
    const base = this.#levels.length;
    for (;;) {
      const wrong = this.#scalarOrOpen();
      if (wrong) return wrong;
      if (this.#entered) continue;
      const after = this.#afterValue(base);
      if (after !== undefined) return after === 'done' ? undefined : after;
    }
  }

  /** True after `scalarOrOpen` opened a container whose first value comes next. */
  #entered = false;

  #scalarOrOpen(): Fault | undefined {
    this.#entered = false;
    this.#skipSpace();
    const char = this.#text[this.#at];
    if (char === '"') return this.#string();
    if (char === '{' || char === '[') {
      if (this.#levels.length >= this.#maxDepth) {
        return this.#fault(`is nested deeper than ${this.#maxDepth} levels`);
      }
      this.#at += 1;
      this.#skipSpace();
      const isObject = char === '{';
      if (this.#text[this.#at] === (isObject ? '}' : ']')) {
        this.#at += 1;
        return undefined;
      }
      this.#levels.push({ keys: isObject ? new Set() : undefined, key: '', index: 0 });
      this.#entered = true;
      return isObject ? this.#key() : undefined;
    }
    const pattern = char === '-' || (char !== undefined && char >= '0' && char <= '9') ? NUMBER : LITERAL;
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return this.#unexpected();
    this.#at = pattern.lastIndex;
    return undefined;
  }

  /** Closes containers that end here and moves to the next value; 'done' when the value that started at level `base` is complete. */
  #afterValue(base: number): Fault | 'done' | undefined {
    for (;;) {
      const level = this.#levels[this.#levels.length - 1];
      if (this.#levels.length === base || level === undefined) return 'done';
      this.#skipSpace();
      const char = this.#text[this.#at];
      if (char === ',') {
        this.#at += 1;
        if (level.keys) return this.#key();
        level.index += 1;
        return undefined;
      }
      if (char !== (level.keys ? '}' : ']')) return this.#unexpected();
      this.#at += 1;
      this.#levels.pop();
    }
  }

  #key(): Fault | undefined {
    const level = this.#levels[this.#levels.length - 1]!;
    this.#skipSpace();
    if (this.#text[this.#at] !== '"') {
      level.key = '';
      return this.#unexpected('a key in double quotes');
    }
    const start = this.#at;
    const wrong = this.#string();
    if (wrong) return wrong;
    const written = this.#text.slice(start, this.#at);
    const key = JSON.parse(written) as string;
    if (key === '__proto__') return this.#keyFault(start, 'must not have the key "__proto__"');
    if (level.keys!.has(key)) return this.#keyFault(start, `has the key ${shownKey(key)} twice`);
    if (this.#levels.length === 1 && written.includes('\\')) {
      return this.#keyFault(start, `has the key ${shownKey(key)} written with escapes`);
    }
    level.keys!.add(key);
    level.key = key;
    this.#skipSpace();
    if (this.#text[this.#at] !== ':') return this.#unexpected("':'");
    this.#at += 1;
    return undefined;
  }

  #string(): Fault | undefined {
    const text = this.#text;
    for (this.#at += 1; this.#at < text.length; this.#at += 1) {
      const code = text.charCodeAt(this.#at);
      if (code === 0x22) {
        this.#at += 1;
        return undefined;
      }
      if (code < 0x20) return this.#syntaxFault('has a control character in a string');
      if (code === 0x5c) {
        const wrong = this.#escape();
        if (wrong) return wrong;
      }
    }
    return this.#syntaxFault('ends inside a string');
  }

  /** Reads an escape and leaves `at` on its last character. */
  #escape(): Fault | undefined {
    const [text, at] = [this.#text, this.#at];
    if (at + 1 >= text.length) return this.#syntaxFault('ends inside a string');
    if ('"\\/bfnrt'.includes(text[at + 1]!)) {
      this.#at += 1;
      return undefined;
    }
    const unit = hexUnit(text, at);
    if (unit === undefined) return this.#syntaxFault('has a broken escape in a string');
    this.#at += 5;
    if (unit < 0xd800 || unit > 0xdfff) return undefined;
    const low = unit < 0xdc00 ? hexUnit(text, at + 6) : undefined;
    if (low === undefined || low < 0xdc00 || low > 0xdfff) {
      const half = text.slice(at, at + 6);
      return {
        offset: at,
        path: this.#path(),
        problem: `has half of a surrogate pair (${half}), which is no character`,
        syntax: false,
      };
    }
    this.#at += 6;
    return undefined;
  }

  #skipSpace(): void {
    for (; this.#at < this.#text.length; this.#at += 1) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    }
  }

  #unexpected(wanted?: string): Fault {
    if (this.#at >= this.#text.length) return this.#syntaxFault('ends too early');
    const code = this.#text.charCodeAt(this.#at);
    const shown =
      code > 0x20 && code < 0x7f ? `'${this.#text[this.#at]}'` : `byte 0x${code.toString(16).padStart(2, '0')}`;
    return this.#syntaxFault(`has an unexpected ${shown}${wanted ? ` instead of ${wanted}` : ''}`);
  }

  #syntaxFault(problem: string): Fault {
    return { offset: this.#at, path: this.#path(), problem, syntax: true };
  }

  #fault(problem: string): Fault {
    return { offset: this.#at, path: this.#path(), problem, syntax: false };
  }

  /** A fault of the object that holds the key. */
  #keyFault(offset: number, problem: string): Fault {
    return { offset, path: pathOf(this.#levels.slice(0, -1)), problem, syntax: false };
  }

  #path(): string {
    return pathOf(this.#levels);
  }
}

function pathOf(levels: readonly Level[]): string {
  let path = '';
  for (const level of levels) {
    if (path.length > MAX_PATH_LENGTH) return `${path}...`;
    path += level.keys ? (level.key === '' ? '' : keyStep(fromLatin1(level.key), path === '')) : `[${level.index}]`;
  }
  return path;
}

/** A key as a path segment: `.text`, or `["a b"]` if it is not an identifier. */
export function keyStep(key: string, first: boolean): string {
  const short = shorten(key, MAX_KEY_LENGTH);
  if (!IDENTIFIER.test(short)) return `[${JSON.stringify(short)}]`;
  return first ? short : `.${short}`;
}

function shownKey(key: string): string {
  return JSON.stringify(shorten(fromLatin1(key), MAX_KEY_LENGTH));
}

function shorten(text: string, maxLength: number): string {
  return text.length > maxLength ? `${cut(text, maxLength)}...` : text;
}

/** Undoes the Latin-1 view for display; a key that mixes escapes with raw characters stays as it is. */
function fromLatin1(text: string): string {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 0xff) return text.toWellFormed();
  return Buffer.from(text, 'latin1').toString('utf8');
}

/** The code unit of a `\uXXXX` at `at`; undefined if there is none. */
function hexUnit(text: string, at: number): number | undefined {
  if (text[at] !== '\\' || text[at + 1] !== 'u') return undefined;
  const digits = text.slice(at + 2, at + 6);
  return /^[0-9a-fA-F]{4}$/.test(digits) ? Number.parseInt(digits, 16) : undefined;
}
