import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { samples } from '../../testing/laws/samples.ts';
import { PatternSet } from './pattern-set.ts';
import { Replacer, replaceAll } from './replacer.ts';

/** Few letters, so that patterns overlap, contain and begin each other. */
const letters = (minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength, maxLength });
const patterns = fc.uniqueArray(letters(2, 9), { minLength: 1, maxLength: 6 });
const text = letters(0, 60);

/** Written from the definition: at each position the longest pattern, from left to right. */
function expected(whole: string, all: readonly string[]): string {
  let result = '';
  for (let at = 0; at < whole.length; ) {
    const longest = all.filter((pattern) => whole.startsWith(pattern, at)).sort((a, b) => b.length - a.length)[0];
    result += longest === undefined ? whole[at] : `<${all.indexOf(longest)}>`;
    at += longest?.length ?? 1;
  }
  return result;
}

function replacing(all: readonly string[]): [PatternSet, (index: number) => Buffer] {
  return [new PatternSet(all.map((pattern) => Buffer.from(pattern))), (index) => Buffer.from(`<${index}>`)];
}

function inChunks(whole: string, sizes: readonly number[], replacer: Replacer): string {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(...replacer.push(Buffer.from(whole.slice(at, at + size))));
    at += size;
  }
  pieces.push(...replacer.push(Buffer.from(whole.slice(at))), ...replacer.end());
  return Buffer.concat(pieces).toString();
}

test('a text is replaced as the definition says', () => {
  fc.assert(
    fc.property(text, patterns, (whole, all) => {
      assert.equal(replaceAll(Buffer.from(whole), ...replacing(all)).toString(), expected(whole, all));
    }),
    { numRuns: samples(2000) },
  );
});

test('a text that arrives in any chunks is replaced as the whole text', () => {
  fc.assert(
    fc.property(text, patterns, fc.array(fc.nat(7), { maxLength: 30 }), (whole, all, sizes) => {
      assert.equal(inChunks(whole, sizes, new Replacer(...replacing(all))), expected(whole, all));
    }),
    { numRuns: samples(5000) },
  );
});

test('a text is replaced the same for every split in two, and byte by byte', () => {
  const all = ['abab', 'ababcab', 'bca', 'cc'];
  const whole = 'xababcabxababcaxababxbcaccxcabab';
  for (let at = 0; at <= whole.length; at += 1) {
    assert.equal(inChunks(whole, [at], new Replacer(...replacing(all))), expected(whole, all), `at ${at}`);
  }
  assert.equal(inChunks(whole, Array(whole.length).fill(1), new Replacer(...replacing(all))), expected(whole, all));
});

test('bytes that cannot begin a pattern are not held', () => {
  const replacer = new Replacer(...replacing(['secret', 'other']));
  const pushed = (chunk: string) => Buffer.concat([...replacer.push(Buffer.from(chunk))]).toString();
  assert.equal(pushed('data: x\n\n'), 'data: x\n\n');
  assert.equal(pushed('data: sec'), 'data: ');
  assert.equal(pushed('ond\n\n'), 'second\n\n');
});

test('ten thousand replacements of one chunk share the memory of one value', () => {
  const value = Buffer.alloc(65_536, 'v');
  const replacer = new Replacer(new PatternSet([Buffer.from('placeholder')]), () => value);
  let bytes = 0;
  for (const piece of replacer.push(Buffer.from('placeholder,'.repeat(10_000)))) {
    assert.ok(piece.buffer === value.buffer || piece.length < 20);
    bytes += piece.length;
  }
  assert.equal(bytes, 10_000 * (65_536 + 1));
});

test('a pattern of one byte is refused', () => {
  assert.throws(() => new PatternSet([Buffer.from('a')]), RangeError);
});
