import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Caller } from '../access/index.ts';
import { acceptItem, type ItemTarget } from './item.ts';

const caller = { workspace: { disabledServerTools: new Set() } } as unknown as Caller;
const target = (model: string | null): ItemTarget => ({
  endpoint: '/v1/messages',
  model,
  provider: null,
  region: 'global',
  shape: 'anthropic',
  headers: {},
});
const body = (more: object) =>
  Buffer.from(JSON.stringify({ max_tokens: 1, messages: [{ role: 'user', content: 'hi' }], ...more }));
const modelOf = (given: string | null, more: object) =>
  acceptItem(body(more), target(given), caller, 0).document.member('model');

test('an item has the model of its batch, which it may repeat; without one it names its own', () => {
  assert.equal(modelOf('a/b', {}), 'a/b');
  assert.equal(modelOf('a/b', { model: 'a/b' }), 'a/b');
  assert.throws(() => modelOf('a/b', { model: 'a/c' }), /model must be a\/b, the model of the batch/);
  assert.equal(modelOf(null, { model: 'a/c' }), 'a/c');
  for (const model of [undefined, '', 7, 'x'.repeat(257)]) {
    assert.throws(() => modelOf(null, { model }), /model must be a text of 1 to 256 characters/);
  }
});
