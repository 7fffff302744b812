/** Diffs of patches: a law over generated changes, and the forms that models write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { created, DiffError, patched } from './diff.ts';

/** Lines that are all different, so that every context is found where it was taken. */
const file = fc.uniqueArray(fc.string({ unit: fc.constantFrom('a', 'b', ' ', '+', '-', '@', 'ü'), minLength: 1 }), {
  minLength: 1,
  maxLength: 20,
  selector: (line) => line.trim(),
});

interface Change {
  from: number;
  removed: number;
  added: string[];
}

const change = fc.record({
  from: fc.nat(100),
  removed: fc.nat(3),
  added: fc.array(fc.string({ unit: fc.constantFrom('x', 'y', ' '), maxLength: 5 }), { maxLength: 3 }),
});

/** A section with one line of context before and after the change. */
function sectionOf(lines: readonly string[], { from, removed, added }: Change): { diff: string[]; result: string[] } {
  const start = from % lines.length;
  const end = Math.min(lines.length, start + removed);
  const before = lines.slice(Math.max(0, start - 1), start);
  const after = lines.slice(end, end + 1);
  const marked = (mark: string, texts: readonly string[]) => texts.map((line) => mark + line);
  return {
    diff: [
      '@@',
      ...marked(' ', before),
      ...marked('-', lines.slice(start, end)),
      ...marked('+', added),
      ...marked(' ', after),
    ],
    result: [...lines.slice(0, start), ...added, ...lines.slice(end)],
  };
}

test('a diff that is made of a change makes this change, whatever ends the lines', () => {
  fc.assert(
    fc.property(file, change, fc.constantFrom('\n', '\r\n'), fc.boolean(), (lines, made, eol, isEnded) => {
      const { diff, result } = sectionOf(lines, made);
      fc.pre(made.added.length > 0 || result.length < lines.length);
      // Without a line end nothing tells how the last line would end.
      fc.pre(eol === '\n' || isEnded);
      const text = (all: readonly string[]) => (all.length === 0 ? '' : all.join(eol) + (isEnded ? eol : ''));
      assert.equal(patched(text(lines), diff.join('\n')), text(result));
    }),
  );
});

test('several sections are looked for one after the other, and anchors say where', () => {
  const text = 'class A:\n  def f():\n    pass\nclass B:\n  def f():\n    pass\n';
  assert.equal(
    patched(text, '@@ class B:\n@@   def f():\n-    pass\n+    return 1\n'),
    'class A:\n  def f():\n    pass\nclass B:\n  def f():\n    return 1\n',
  );
  assert.equal(patched('a\nb\na\nb\n', '@@\n-a\n+1\n@@\n-a\n+2'), '1\nb\n2\nb\n');
  assert.equal(patched('a\nb\na\n', '@@\n-a\n+1\n*** End of File'), 'a\nb\n1\n');
  assert.equal(patched('a\n', '@@\n+b\n*** End of File\n'), 'a\nb\n');
  assert.equal(patched('', '+a'), 'a\n');
});

test('white space of the context may differ, and the line of the file stays', () => {
  assert.equal(patched('\tone  \n\ttwo\n', ' one\n-two\n+three'), '\tone  \nthree\n');
  assert.equal(patched('a\n\nb\n', ' a\n\n-b\n+c'), 'a\n\nc\n');
});

test('the envelope of a patch, and numbers of unified diffs, are passed over', () => {
  const diff = '*** Begin Patch\n*** Update File: x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n*** End Patch\n';
  assert.equal(patched('a\nb\n', diff), 'a\nc\n');
  assert.equal(created('*** Add File: x\n+a\n+\n'), 'a\n\n');
});

test('a diff that does not fit says what is missing', () => {
  const problems: [() => string, RegExp][] = [
    [() => patched('a\n', '-b\n+c'), /the context is not in the file after line 0: "b"/],
    [() => patched('a\nb\n', '@@ c\n-a\n+x'), /the line after @@ is not in the file/],
    [() => patched('a\nb\n', '@@ b\n-a\n+x'), /after line 2/],
    [() => patched('a\n', 'a\n+b'), /line 1 of the diff must begin with a space/],
    [() => patched('a\n', ' a\n'), /changes nothing/],
    [() => patched('a\n', ''), /changes nothing/],
    [() => created('a'), /line 1 of the diff must begin with \+/],
  ];
  for (const [run, problem] of problems) {
    assert.throws(run, (error) => error instanceof DiffError && problem.test(error.message));
  }
});

test('repeated lines are searched in time that grows with their number only', () => {
  const text = 'a\n'.repeat(200_000);
  const diff = `${' a\n'.repeat(50_000)}-b\n`;
  assert.throws(() => patched(text, diff), /is not in the file/);
});
