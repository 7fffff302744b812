import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cut } from './characters.ts';

test('a cut text is a beginning of whole characters, as long as can be', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 0, max: 20 }), (text, most) => {
      const beginning = cut(text, most);
      assert.ok(beginning.isWellFormed() && text.startsWith(beginning) && beginning.length <= most);
      assert.ok(beginning === text || beginning.length >= most - 1);
    }),
  );
  assert.deepEqual(
    ['a\u{1f600}b', '\ud83d', 'a\ud83db'].map((text) => cut(text, 2)),
    ['a', '\ufffd', 'a'],
  );
});
