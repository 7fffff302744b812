/** Filter patterns matched by re2js only, without a prefilter: the reference for faster implementations. */
import { RE2JS } from 're2js';
import { forbiddenIn } from '../../guardrails/filters/dialect.ts';
import type { Span } from '../../guardrails/filters/reading.ts';

/** undefined where no rule may have it. */
export function plainPattern(source: string): RE2JS | undefined {
  if (forbiddenIn(source) !== undefined) return undefined;
  try {
    const expression = RE2JS.compile(RE2JS.translateRegExp(source));
    return expression.matcher('').find() ? undefined : expression;
  } catch {
    return undefined;
  }
}

/** Every position where it matches, except for empty matches. */
export function placesIn(expression: RE2JS, text: string): Span[] {
  const spans: Span[] = [];
  const matcher = expression.matcher(text);
  while (matcher.find()) {
    if (matcher.end() > matcher.start()) spans.push({ start: matcher.start(), end: matcher.end() });
  }
  return spans;
}
