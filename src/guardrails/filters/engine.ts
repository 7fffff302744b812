/**
 * What matches regular expressions: the module `re2` (RE2 itself) where an operator installed it, and re2js otherwise. Both
 * follow the same rules. re2js is always there: it says what may be written and what is known of a pattern.
 */
import { createRequire } from 'node:module';
import { nextAt } from './units.ts';

type Portable = typeof import('re2js');
export type PortableExpression = ReturnType<Portable['RE2JS']['compile']>;

/** One compiled pattern. */
export interface Expression {
  matches(text: string): boolean;
  /** @param visit gets each match from a place on, empty ones as well; false ends the search */
  each(text: string, from: number, visit: (start: number, end: number) => boolean): void;
}

/** What is used of the module `re2`. */
export interface NativeExpression {
  lastIndex: number;
  exec(text: string): { index: number; 0: string } | null;
}
export interface NativeModule {
  new (pattern: string, flags: string): NativeExpression;
  /** Since version 1.24. Throws where it ran out of memory. */
  readonly Set?: new (
    patterns: readonly string[],
    flags: string,
  ) => { match(text: string): readonly number[] };
}

let native: NativeModule | null | undefined;

/** Looked for once; one that was built for another runtime counts as none. */
export function nativeModule(): NativeModule | null {
  if (native === undefined) {
    try {
      native = createRequire(import.meta.url)('re2') as NativeModule;
    } catch {
      native = null;
    }
  }
  return native;
}

/** What matches patterns in this installation. */
export function patternEngine(): 're2' | 're2js' {
  return nativeModule() === null ? 're2js' : 're2';
}

/** @param module null: re2js. A pattern that the module does not take is matched by re2js, so that it keeps governing. */
export function expressionOf(portable: PortableExpression, translated: string, module = nativeModule()): Expression {
  return (module !== null && nativeExpression(translated, module)) || portableExpression(portable);
}

function portableExpression(expression: PortableExpression): Expression {
  return {
    matches: (text) => expression.matcher(text).find(),
    each(text, from, visit) {
      const matcher = expression.matcher(text);
      for (let found = from <= text.length && matcher.find(from); found; found = matcher.find()) {
        if (!visit(matcher.start(), matcher.end())) return;
      }
    },
  };
}

/** @returns undefined for a pattern that the module does not take */
export function nativeExpression(translated: string, module: NativeModule): Expression | undefined {
  let expression: NativeExpression;
  try {
    expression = new module(translated, 'gu');
  } catch {
    return undefined;
  }
  const next = (text: string, from: number) => {
    expression.lastIndex = from;
    return expression.exec(text);
  };
  return {
    matches: (text) => next(text, 0) !== null,
    each(text, from, visit) {
      // No match begins between the halves of a character, and the module counts wrongly from there.
      let at = from > 0 && text.codePointAt(from - 1)! > 0xffff ? from + 1 : from;
      while (at <= text.length) {
        const match = next(text, at);
        if (match === null) return;
        const end = match.index + match[0].length;
        if (!visit(match.index, end)) return;
        // Behind an empty match the next may begin one character on, never between its halves.
        at = end > match.index ? end : nextAt(text, end);
      }
    },
  };
}

/** Tells for many patterns which of them match. */
export interface ExpressionSet {
  /** @returns indices in order; undefined where it cannot say */
  matching(text: string): readonly number[] | undefined;
}

/** @returns undefined where the module has no sets, or does not take all of the patterns */
export function nativeSet(translated: readonly string[], module: NativeModule): ExpressionSet | undefined {
  if (module.Set === undefined) return undefined;
  try {
    const set = new module.Set(translated, 'u');
    return {
      matching(text) {
        try {
          return set.match(text);
        } catch {
          return undefined;
        }
      },
    };
  } catch {
    return undefined;
  }
}
