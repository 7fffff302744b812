import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { samples } from '../../testing/laws/samples.ts';
import { shortened } from './shorten.ts';

test('a list of messages keeps its end, says what is missing, and is about as small as requested', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ role: fc.constant('user'), content: fc.string({ maxLength: 9_000 }) }), {
        minLength: 1,
        maxLength: 40,
      }),
      fc.integer({ min: 100, max: 50_000 }),
      (messages, most) => {
        const kept = shortened(messages, most) as { role: string; content: string }[];
        const whole = kept.length === messages.length && kept[0]?.role === 'user';
        const said = whole ? kept : kept.slice(1);
        assert.ok(JSON.stringify(said).length <= most + 2);
        if (!whole) assert.equal(kept[0]?.content, `[${messages.length - said.length} earlier messages are left out]`);
        said.forEach((message, index) => {
          const { content } = messages[messages.length - said.length + index]!;
          if (content.length <= 2_048) assert.equal(message.content, content);
        });
      },
    ),
    { numRuns: samples(100) },
  );
});

test('a long text keeps its beginning and end and never half a character', () => {
  const text = `a${'\u{1f600}'.repeat(2_000)}z`;
  const cut = shortened(text, 1_000) as string;
  assert.ok(cut.startsWith('a\u{1f600}') && cut.endsWith('\u{1f600}z') && cut.isWellFormed());
  assert.match(cut, /\[3\d{3} characters are left out\]/);
  assert.equal(shortened('short', 1_000), 'short');
});
