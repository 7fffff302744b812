import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import type { ServedFormat } from '../../formats/conversation/format.ts';
import { chat, messages, responses } from '../../formats/index.ts';
import { TestClock } from '../../testing/clock/clock.ts';
import { samples } from '../../testing/laws/samples.ts';
import { TokenCounter } from './counter.ts';
import { encodingOf } from './family.ts';
import { countInPieces } from './pieces.ts';
import { requestText } from './request-text.ts';

const PLAIN = { disallowedSpecial: new Set<string>() };
const exact = (text: string) => countTokens(text, PLAIN);

test('each family has the tokenizer that its vendor published, and others have none', () => {
  const cases: [string, string | undefined][] = [
    ['gpt-4o-mini', 'o200k_base'],
    ['gpt-4.1', 'o200k_base'],
    ['openai/gpt-5.2-chat', 'o200k_base'],
    ['ft:gpt-4o-2024-08-06:acme::x', 'o200k_base'],
    ['openai.gpt-oss-120b-1:0', 'o200k_base'],
    ['o3', 'o200k_base'],
    ['o4-mini', 'o200k_base'],
    ['gpt-4', 'cl100k_base'],
    ['gpt-4-turbo', 'cl100k_base'],
    ['gpt-3.5-turbo', 'cl100k_base'],
    ['claude-sonnet-5', undefined],
    ['gemini-3-pro', undefined],
    ['llama-3.3-70b', undefined],
    ['foo3', undefined],
    ['my-gpt-neo', undefined],
  ];
  for (const [model, encoding] of cases) assert.equal(encodingOf(model), encoding, model);
});

test('usual texts are counted exactly, and no text is counted too low', () => {
  for (const text of ['', 'hello world', 'Grüße aus 北京 🌤', 'x <|endoftext|> y', 'a b\n\n  c\t1234567']) {
    assert.equal(countInPieces(text, exact), exact(text));
  }
  const run = fc.tuple(
    fc.constantFrom('a', 'ab', ' ', '\n', '=', '语', 'é', '🌤', 'word '),
    fc.integer({ min: 1, max: 400 }),
  );
  fc.assert(
    fc.property(fc.array(run, { maxLength: 6 }), (runs) => {
      const text = runs.map(([piece, times]) => piece.repeat(times)).join('');
      assert.ok(countInPieces(text, exact) >= exact(text));
    }),
    { numRuns: samples(60) },
  );
});

test('no piece passed to the tokenizer has a run that makes its merging quadratic', () => {
  for (const sign of ['a', ' ', '=', '语', '́']) {
    let longest = 0;
    countInPieces(`x ${sign.repeat(300_000)} y`, (piece) => {
      longest = Math.max(longest, ...(piece.match(/\p{L}+|\s+|[^\s\p{L}\p{N}]+/gu) ?? []).map(({ length }) => length));
      return 1;
    });
    assert.ok(longest <= 128, `${sign}: ${longest}`);
  }
});

test('the thread counts a megabyte of one letter, ends when idle, and starts again', async () => {
  const clock = new TestClock();
  const counter = new TokenCounter(clock);
  assert.equal(counter.running, false);
  const tokens = await counter.count('o200k_base', 'a'.repeat(1024 * 1024));
  assert.ok(tokens !== undefined && tokens > (1024 * 1024) / 16 && tokens < 1024 * 1024, String(tokens));
  assert.equal(counter.running, true);
  clock.advance(60_000);
  assert.equal(counter.running, false);
  assert.equal(await counter.count('cl100k_base', 'hello world'), 2);
  await counter.close();
});

test('a count that takes too long fails together with those that wait, and the next one succeeds', async () => {
  const clock = new TestClock();
  const counter = new TokenCounter(clock);
  assert.equal(await counter.count('o200k_base', 'hello world'), 2);
  const counts = [counter.count('o200k_base', 'word '.repeat(100_000)), counter.count('o200k_base', 'x')];
  clock.advance(4_000);
  assert.deepEqual(await Promise.all(counts), [undefined, undefined]);
  assert.equal(await counter.count('o200k_base', 'hello world'), 2);
  await counter.close();
});

test('the timeout of a count begins when its tokenizer has loaded, which has a longer timeout of its own', async () => {
  const clock = new TestClock();
  const counter = new TokenCounter(clock);
  const slow = counter.count('o200k_base', 'hello world');
  clock.advance(29_999);
  assert.equal(await slow, 2);

  // Both wait for the other tokenizer; the first count shows that it has loaded.
  const counts = [counter.count('cl100k_base', 'one'), counter.count('cl100k_base', 'a'.repeat(4 * 1024 * 1024))];
  assert.equal(await counts[0], 1);
  clock.advance(4_000);
  assert.equal(await counts[1], undefined);

  const stuck = counter.count('o200k_base', 'hello world');
  clock.advance(29_999);
  assert.equal(counter.running, true, 'a new thread has loaded nothing');
  clock.advance(1);
  assert.equal(await stuck, undefined);
  assert.equal(counter.running, false);
  await counter.close();
});

test('too long texts and too many texts are not counted', async () => {
  const counter = new TokenCounter(new TestClock());
  assert.equal(await counter.count('o200k_base', 'a'.repeat(4 * 1024 * 1024 + 1)), undefined);
  assert.equal(counter.running, false);
  const counts = Array.from({ length: 17 }, () => counter.count('cl100k_base', 'one'));
  assert.equal(await counts[16], undefined);
  assert.deepEqual(
    await Promise.all(counts.slice(0, 16)),
    Array.from({ length: 16 }, () => 1),
  );
  await counter.close();
});

const url = 'data:image/png;base64,AAAA';
const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' };
/** A request of each format with one image, and with texts in objects that only look like one. */
const WITH_IMAGES: readonly [ServedFormat, Record<string, unknown>][] = [
  [
    chat,
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url } },
            { type: 'image', text: 'look' },
          ],
        },
        { role: 'user', content: [{ type: 'text', text: 'closer', image_url: '' }] },
      ],
      tools: [{ type: 'image_url', description: 'hidden' }],
    },
  ],
  [
    messages,
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', source },
            { type: 'text', text: 'look' },
          ],
        },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', input: { type: 'image', text: 'closer' } }] },
      ],
      tools: [{ type: 'image', description: 'hidden' }],
    },
  ],
  [
    responses,
    {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_image', image_url: url },
            { type: 'input_text', text: 'look' },
          ],
        },
        { type: 'function_call_output', output: { type: 'input_image', text: 'closer' } },
      ],
      tools: [{ type: 'input_image', description: 'hidden' }],
    },
  ],
];

for (const [format, body] of WITH_IMAGES) {
  test(`${format.id}: the text for counting leaves out only the images, which are counted separately`, () => {
    assert.ok(format.facts(body).media.images >= 1);
    const text = requestText(body, format.images(body));
    for (const word of ['look', 'closer', 'hidden']) assert.ok(text.includes(word), word);
    assert.ok(!text.includes('AAAA'));
  });
}
