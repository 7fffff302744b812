import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineItems } from '../openai/line-item.ts';
import { svcItems } from './submitted-item.ts';

test('a custom_id has at most 256 characters, however many bytes each of them takes', () => {
  const line = (custom_id: string) => ({ custom_id, method: 'POST', url: '/v1/embeddings', body: {} });
  const item = (custom_id: string) => ({ custom_id, body: {} });
  for (const [form, made] of [
    [svcItems, item],
    [lineItems('/v1/embeddings'), line],
  ] as const) {
    const read = (customId: string) => form.read(Buffer.from(JSON.stringify(made(customId))), 3);
    for (const character of ['a', 'ß', '京', '🌤']) {
      assert.equal(read(character.repeat(256)).customId, character.repeat(256));
      assert.throws(() => read(character.repeat(257)), /(?:requests\[3\]|line 4).*custom_id.* 1 to 256 characters/);
    }
    assert.throws(() => read(''), /custom_id/);
  }
});
