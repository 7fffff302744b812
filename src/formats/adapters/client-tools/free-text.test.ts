import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FreeText } from './free-text.ts';

function read(pieces: readonly string[]): { early: string; text: string } {
  const reader = new FreeText();
  const early = pieces.map((piece) => reader.add(piece)).join('');
  return { early, text: early + reader.end() };
}

/** JSON of a text in which some characters are escaped needlessly. */
function written(text: string, escaped: boolean, space: string): string {
  const json = JSON.stringify(text);
  const body = escaped
    ? json.replace(/[^\\"\x20-\x7e]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
    : json;
  return `${space}{${space}"input"${space}:${space}${body}${space}}`;
}

const cutText = (text: string, cuts: readonly number[]) => {
  const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, index) => text.slice(from, at[index] ?? text.length));
};

test('the free text of a custom tool is read while it streams, wherever the pieces are cut', () => {
  const text = fc.string({ unit: 'binary' });
  const space = fc.constantFrom('', ' ', '\n\t ');
  fc.assert(
    fc.property(text, fc.boolean(), space, fc.array(fc.nat(), { maxLength: 8 }), (said, escaped, blank, cuts) => {
      const { early, text: got } = read(cutText(written(said, escaped, blank), cuts));
      assert.equal(got, said);
      assert.equal(early, said);
    }),
  );
});

test('free text in another shape is read at the end of the call', () => {
  for (const [given, text] of [
    ['*** Begin Patch', '*** Begin Patch'],
    ['{"patch":"a\\nb"}', 'a\nb'],
    ['{"why":1,"input":"x"}', 'x'],
    ['"plain"', 'plain'],
    ['{"a":1,"b":2}', '{"a":1,"b":2}'],
    ['{ not json', '{ not json'],
    ['', ''],
  ] as const) {
    assert.equal(read([...given]).text, text);
    assert.equal(read([given]).text, text);
  }
});
