/** Required keys are searched first; this never hides a match from the engine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { systemClock } from '../../base/clock.ts';
import { placesIn, plainPattern } from '../../testing/laws/plain-patterns.ts';
import { samples } from '../../testing/laws/samples.ts';
import { type NativeModule, nativeExpression, nativeModule } from './engine.ts';
import { keysOf } from './keys.ts';
import { Effort, Pattern, PatternSet, programOf } from './patterns.ts';

const LETTERS = 'abkKsS1 -ſKéß中😀\ufffd';
const atom = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: fc.constantFrom(...LETTERS), minLength: 1, maxLength: 4 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('\\d', '\\w', '.', '[ab]', '[^a]', '\\b', '^', '$', '\\x61', '\\u0062', '[k]', '\\pL'),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '[a-k]{3}',
      '[0-9]{2}-',
      '[À-ɏ]',
      '[一-龥]{2}',
      '[😀-😂]',
      '[k-s]-\\d',
      '[éß]',
      '(?i:[a-s])',
      '\\x{fffd}',
    ),
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
  .array(
    fc.oneof(
      fc.constantFrom(...LETTERS, 'ab', 'ks', '\n', 'A', '11-', 'kab', 'K-1', '中中'),
      fc.string({ unit: 'binary', maxLength: 3 }),
    ),
    {
      maxLength: 24,
    },
  )
  .map((parts) => parts.join(''));

const letter = RE2JS.compile('\\pL');
const nativeLetter = nativeModule() === null ? undefined : nativeExpression('\\pL', nativeModule()!);

/** The engines use different Unicode versions: a newer letter is a letter for only one of them. */
function isSettled(of: string): boolean {
  return nativeLetter === undefined || [...of].every((one) => nativeLetter.matches(one) === letter.test(one));
}

async function compare(native: NativeModule | null, numRuns: number): Promise<void> {
  let matched = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(flagged, { minLength: 1, maxLength: 4 }),
      fc.array(text.filter(isSettled), { maxLength: 6 }),
      async (all, texts) => {
        const sources = all.filter((source) => plainPattern(source) !== undefined);
        if (sources.length === 0) return;
        const set = await PatternSet.of(sources, native);
        const single = await Promise.all(sources.map((source) => Pattern.of(source)));
        let isMatched = false;
        for (const one of [...texts, ...sources]) {
          const expected = sources.map((source) => placesIn(plainPattern(source)!, one));
          const effort = new Effort(systemClock);
          const matching = set.matching(one, effort);
          expected.forEach((spans, index) => {
            assert.deepEqual(single[index]!.find(one, 0), spans, `${sources[index]} in ${JSON.stringify(one)}`);
            assert.equal(
              matching.includes(index),
              plainPattern(sources[index]!)!.matcher(one).find(),
              `${sources[index]} in ${JSON.stringify(one)}`,
            );
            if (spans.length > 0) assert.deepEqual(set.find(index, one, effort), spans);
            if (spans.length > 0) isMatched = true;
          });
        }
        if (isMatched) matched += 1;
      },
    ),
    { numRuns },
  );
  // More than a quarter of the samples matches.
  assert.ok(matched > numRuns / 20, `only ${matched} samples matched`);
}

test('searching keys first gives the matches of the engine, for single patterns and sets', async () => {
  await compare(null, 200);
});

const skip = nativeModule() === null && 'the module `re2` is not installed';

test('the native engine matches where re2js matches', { skip }, () => compare(nativeModule(), 200));

test('every accepted pattern compiles on the native engine', { skip }, () => {
  fc.assert(
    fc.property(flagged, (source) => {
      fc.pre(plainPattern(source) !== undefined);
      assert.ok(nativeExpression(RE2JS.translateRegExp(source), nativeModule()!) !== undefined, source);
    }),
    { numRuns: samples(500) },
  );
});

/** Stand-in for the native module: JavaScript's own engine, which rejects inline flags that RE2 accepts. */
class Counting {
  static made = 0;
  static asked = 0;
  readonly #expression: RegExp;

  constructor(pattern: string, flags: string) {
    this.#expression = new RegExp(pattern, flags);
    Counting.made += 1;
  }

  set lastIndex(at: number) {
    this.#expression.lastIndex = at;
  }

  exec(text: string): RegExpExecArray | null {
    Counting.asked += 1;
    return this.#expression.exec(text);
  }
}

test('the native engine gets only candidate patterns, and patterns it rejects still match', async () => {
  const set = await PatternSet.of(['order-\\d{2}', '(?i)badge'], Counting);
  const effort = new Effort(systemClock);
  assert.equal(Counting.made, 1);
  assert.deepEqual(set.matching('nothing of the kind', effort), []);
  assert.equal(Counting.asked, 0);
  const text = 'a BADGE for order-12, order-34';
  assert.deepEqual(set.matching(text, effort), [0, 1]);
  assert.equal(Counting.asked, 1);
  assert.deepEqual(set.find(0, text, effort), [
    { start: 12, end: 20 },
    { start: 22, end: 30 },
  ]);
  assert.deepEqual(set.find(1, text, effort), [{ start: 2, end: 7 }]);
});

test('number patterns reach the engine only where enough characters of each kind are in a row', async () => {
  const sources = ['\\b\\d{9,12}\\b', '[A-Z]{3}-\\d{4,8}', '(?:[01]\\d|2[0-3]):[0-5]\\d', 'größe-\\d|密码:', '\\d+ €'];
  const set = await PatternSet.of(sources, Counting);
  const effort = new Effort(systemClock);
  const before = Counting.asked;
  for (const near of ['12345678 and 87654321', 'AB-1234, ABC-123', '24:99 7:3', 'grösse-1 密:', '7 EUR, 8 £', '']) {
    assert.deepEqual(set.matching(near, effort), [], near);
  }
  assert.equal(Counting.asked, before);
  for (const [index, hit] of ['123456789', 'xABC-1234', '19:59', 'die 密码:', '7 €'].entries()) {
    assert.deepEqual(set.matching(hit, effort), [index]);
  }
  assert.equal(Counting.asked, before + sources.length);
});

test('a pattern of many steps is stopped by the time budget before it has searched all of a text', async () => {
  const lengths: number[] = [];
  class Recording extends Counting {
    override exec(text: string): RegExpExecArray | null {
      lengths.push(text.length);
      return super.exec(text);
    }
  }
  // Each look at this clock takes 300 ms.
  let looks = 0;
  const effort = () => {
    looks = 0;
    return new Effort({ ...systemClock, monotonic: () => 300 * looks++ });
  };
  const set = await PatternSet.of(['[^x]{1000}(?:ab|cd){500}q'], Recording);
  const text = `${'x'.repeat(30_000)}q`;
  const searches = [() => set.matching(text, effort()), () => set.find(0, text, effort())];
  for (const search of searches) {
    lengths.length = 0;
    assert.throws(search, { status: 413 });
    assert.ok(lengths.length > 1 && lengths.every((length) => length <= 16_384), lengths.join());
  }
  // Within the budget all of it is searched, at the end at once.
  lengths.length = 0;
  assert.deepEqual(set.matching(text, new Effort({ ...systemClock, monotonic: () => 0 })), []);
  assert.equal(lengths.at(-1), text.length);
});

test('keys are computed in reasonable time, however many alternatives a pattern has', () => {
  const many = Array.from({ length: 200 }, (_, index) => `(?:a${index}|b?c${index % 7})`).join('');
  const keys = (source: string) => keysOf(programOf(RE2JS.compile(source)));
  assert.ok(keys(many) === undefined || keys(many)!.length > 0);
  assert.equal(keys('(?:x*y?)*'), undefined);
  assert.equal(keys('abc|\\d{4}|[x-z]!')!.length, 3);
});

test('several candidates are matched at once, or one by one if the module cannot decide', async () => {
  let asked = 0;
  class Sets extends Counting {
    static Set = class {
      readonly #expressions: RegExp[];

      constructor(patterns: readonly string[]) {
        this.#expressions = patterns.map((source) => new RegExp(source, 'u'));
      }

      match(text: string): number[] {
        asked += 1;
        if (asked > 1) throw new Error('out of memory');
        return [...this.#expressions.keys()].filter((index) => this.#expressions[index]!.test(text));
      }
    };
  }
  const set = await PatternSet.of(['order-\\d{2}', 'badge', 'room \\d'], Sets);
  const effort = new Effort(systemClock);
  const before = Counting.asked;
  assert.deepEqual(set.matching('a badge, order-1x, room 7', effort), [1, 2]);
  assert.deepEqual([asked, Counting.asked - before], [1, 0]);
  assert.deepEqual(set.matching('a badge, order-1x, room 7', effort), [1, 2]);
  assert.deepEqual([asked, Counting.asked - before], [2, 2]);
  assert.deepEqual(set.matching('order-12', effort), [0]);
  assert.equal(asked, 2);
});
