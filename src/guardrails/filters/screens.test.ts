/** What must stand in a match is looked for first: that never hides a match from the engine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { systemClock } from '../../base/clock.ts';
import { forbiddenIn } from './dialect.ts';
import { Effort, Pattern, PatternSet } from './patterns.ts';

const LETTERS = 'abkKsS1 -ſKéß中😀';
const atom = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: fc.constantFrom(...LETTERS), minLength: 1, maxLength: 4 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('\\d', '\\w', '.', '[ab]', '[^a]', '\\b', '^', '$', '\\x61', '\\u0062', '[k]', '\\pL'),
  },
);
const { pattern } = fc.letrec<{ pattern: string; piece: string }>((tie) => ({
  piece: fc.oneof(
    { maxDepth: 3 },
    atom,
    fc.tuple(tie('pattern'), tie('pattern')).map(([a, b]) => `(?:${a}|${b})`),
    fc.tuple(tie('pattern'), fc.constantFrom('?', '{2}', '{0,2}', '+', '*', '+?')).map(([a, q]) => `(?:${a})${q}`),
    tie('pattern').map((inner) => `(?i:${inner})`),
    tie('pattern').map((inner) => `(?<n>${inner})`),
  ),
  pattern: fc.array(tie('piece'), { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join('')),
}));
const flagged = fc.tuple(fc.constantFrom('', '', '(?i)', '(?s)', '(?m)'), pattern).map((parts) => parts.join(''));
const text = fc
  .array(fc.oneof(fc.constantFrom(...LETTERS, 'ab', 'ks', '\n', 'A'), fc.string({ unit: 'binary', maxLength: 3 })), {
    maxLength: 24,
  })
  .map((parts) => parts.join(''));

function plain(source: string): RE2JS | undefined {
  if (forbiddenIn(source) !== undefined) return undefined;
  try {
    const expression = RE2JS.compile(RE2JS.translateRegExp(source));
    return expression.matcher('').find() ? undefined : expression;
  } catch {
    return undefined;
  }
}

function placesIn(expression: RE2JS, of: string): { start: number; end: number }[] {
  const spans: { start: number; end: number }[] = [];
  const matcher = expression.matcher(of);
  while (matcher.find())
    if (matcher.end() > matcher.start()) spans.push({ start: matcher.start(), end: matcher.end() });
  return spans;
}

test('patterns with what they need looked for first match where the engine alone says, alone and together', async () => {
  let matches = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(flagged, { minLength: 1, maxLength: 4 }),
      fc.array(text, { maxLength: 6 }),
      async (all, texts) => {
        const sources = all.filter((source) => plain(source) !== undefined);
        if (sources.length === 0) return;
        const set = await PatternSet.of(sources);
        const single = await Promise.all(sources.map((source) => Pattern.of(source)));
        for (const one of [...texts, ...sources]) {
          const expected = sources.map((source) => placesIn(plain(source)!, one));
          const effort = new Effort(systemClock);
          const matching = set.matching(one, effort);
          expected.forEach((spans, index) => {
            assert.deepEqual(single[index]!.find(one, 0), spans, `${sources[index]} in ${JSON.stringify(one)}`);
            assert.equal(
              matching.includes(index),
              plain(sources[index]!)!.matcher(one).find(),
              `${sources[index]} in ${JSON.stringify(one)}`,
            );
            if (spans.length > 0) assert.deepEqual(set.find(index, one, effort), spans);
            matches += spans.length;
          });
        }
      },
    ),
    { numRuns: 200 },
  );
  assert.ok(matches > 20, `only ${matches} matches were compared`);
});
