/**
 * The regular expression engine: the native module `re2` if the operator installed it, otherwise re2js. Both follow the
 * same rules. re2js is always present, because it validates patterns and supplies their compiled programs.
 */
import { createRequire } from 'node:module';
import { nextAt } from './units.ts';

type Portable = typeof import('re2js');
export type PortableExpression = ReturnType<Portable['RE2JS']['compile']>;

/** One compiled pattern. */
export interface Expression {
  matches(text: string): boolean;
  /** @param visit gets each match from an offset on, including empty ones; returns false to end the search */
  each(text: string, from: number, visit: (start: number, end: number) => boolean): void;
}

/** The used part of the module `re2`. */
interface NativeExpression {
  lastIndex: number;
  exec(text: string): { index: number; 0: string } | null;
}
export interface NativeModule {
  new (pattern: string, flags: string): NativeExpression;
  /** Since version 1.24. Throws when it runs out of memory. */
  readonly Set?: new (
    patterns: readonly string[],
    flags: string,
  ) => { match(text: string): readonly number[] };
}

let native: NativeModule | null | undefined;

/** Loads the module once; a module built for another runtime counts as absent. */
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

/** The engine in use in this installation. */
export function patternEngine(): 're2' | 're2js' {
  return nativeModule() === null ? 're2js' : 're2';
}

/** @param module null: re2js. A pattern that the module rejects is matched by re2js, so that it stays in force. */
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

/** @returns undefined for a pattern that the module rejects */
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
      // No match begins between surrogates, and the module miscounts from there.
      let at = from > 0 && text.codePointAt(from - 1)! > 0xffff ? from + 1 : from;
      while (at <= text.length) {
        const match = next(text, at);
        if (match === null) return;
        const end = match.index + match[0].length;
        if (!visit(match.index, end)) return;
        // After an empty match the next one may begin one character later, never between surrogates.
        at = end > match.index ? end : nextAt(text, end);
      }
    },
  };
}

/** Decides for many patterns at once which of them match. */
export interface ExpressionSet {
  /** @returns indices in order; undefined if it cannot decide */
  matching(text: string): readonly number[] | undefined;
}

/** @returns undefined if the module has no sets, or rejects one of the patterns */
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
