import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestClock } from '../../testing/clock/clock.ts';
import { RememberedThinking } from './thinking-memory.ts';

const thinking = (id: string, length = 1) => ({
  reasoning: [
    { type: 'reasoning' as const, text: 'x'.repeat(length), signature: 's', origin: 'anthropic-claude-v1' as const },
  ],
  signatures: new Map(),
  names: new Map([[id, 'look']]),
  size: length + 1,
});

test('the memory stays within its size, and drops the least recently used entries', () => {
  const remembered = new RememberedThinking(new TestClock());
  const memory = remembered.of('key');
  memory.keep(thinking('first'));
  memory.keep(thinking('second'));
  for (let count = 0; count < 200; count++) {
    assert.ok(memory.recall('first'));
    memory.keep(thinking(`long ${count}`, 200_000));
    assert.ok(remembered.size <= 16 * 1024 * 1024, String(remembered.size));
  }
  assert.equal(memory.recall('second'), undefined);
  assert.ok(memory.recall('long 199'));
});

test('an entry that is kept again is stored once, and keys are separate', () => {
  const remembered = new RememberedThinking(new TestClock());
  remembered.of('a').keep(thinking('call', 100));
  const { size } = remembered;
  remembered.of('a').keep(thinking('call', 100));
  assert.equal(remembered.size, size);
  assert.equal(remembered.of('b').recall('call'), undefined);
});
