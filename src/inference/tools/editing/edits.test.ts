import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { inserted, numbered, replaced } from './edits.ts';

const text = fc.string({ unit: fc.constantFrom('a', 'b', '\n', '$', 'ü'), maxLength: 30 });

test('a replacement changes the only occurrence and nothing else, whatever the new text contains', () => {
  fc.assert(
    fc.property(text, text, text, (before, after, to) => {
      const whole = `${before}<<>>${after}`;
      assert.equal(replaced('f', whole, '<<>>', to), before + to + after);
      assert.throws(() => replaced('f', whole, '<none>', to), /did not appear/);
      assert.throws(() => replaced('f', `${whole}<<>>`, '<<>>', to), /Multiple occurrences/);
    }),
  );
  assert.throws(() => replaced('f', 'a\nb\na', 'a', 'x'), /lines: 1, 3/);
  // Occurrences that overlap are two.
  assert.throws(() => replaced('f', 'aaa', 'aa', 'x'), /Multiple/);
});

test('an insertion puts whole lines after the given one', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom<string>('a', '', 'bc'), { minLength: 1, maxLength: 6 }),
      fc.nat(6),
      (lines, at) => {
        const line = at % (lines.length + 1);
        const before = lines.map((each) => `${each}\n`).join('');
        const expected = lines.toSpliced(line, 0, 'new');
        assert.equal(inserted(before, line, 'new\n'), expected.map((each) => `${each}\n`).join(''));
      },
    ),
  );
  assert.equal(inserted('a', 1, 'b'), 'a\nb');
  assert.equal(inserted('', 0, 'b'), 'b');
  assert.equal(inserted('a\nb', 1, 'x'), 'a\nx\nb');
  for (const line of [-1, 3, 0.5, undefined]) assert.throws(() => inserted('a\nb\n', line, 'x'), /insert_line/);
});

test('lines are numbered from the first that is asked for', () => {
  assert.equal(numbered('f', 'a\nb\nc', [2, -1]), "Here's the content of f with line numbers:\n     2\tb\n     3\tc");
  for (const range of [[0, 1], [2, 1], [1, 4], [4, -1], [1]])
    assert.throws(() => numbered('f', 'a\nb\nc', range), /view_range/);
});
