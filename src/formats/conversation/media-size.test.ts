import assert from 'node:assert/strict';
import { test } from 'node:test';
import { excessMediaBytes } from './media-size.ts';

const PNG = 'iVBORw0KGgo';
const long = (start: string) => start + 'A'.repeat(1_000_000 - start.length);

test('an inline image counts as 1,600 tokens, whatever its size', () => {
  for (const url of [long(`data:image/png;base64,${PNG}`), long(PNG)]) {
    const body = { messages: [{ content: [{ image: { url } }, { text: 'a' }] }] };
    assert.equal(1_000_000 - excessMediaBytes(body), 1_600 * 4);
  }
  assert.equal(excessMediaBytes({ url: `data:image/png;base64,${PNG}` }), 0);
});

test('other inline media count by their size, and texts by every byte', () => {
  assert.equal(1_000_000 - excessMediaBytes([long('data:application/pdf;base64,JVBERi0')]), 62_500);
  assert.equal(excessMediaBytes({ text: 'a word '.repeat(100_000), count: 5, none: null }), 0);
});
