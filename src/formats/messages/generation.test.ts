/** What each generation of the vendor's models accepts, by the names under which services offer them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generationOf } from './generation.ts';

test('a generation is recognized by its name at every service, and a date is not read as a version', () => {
  const first = {
    schemas: false,
    thinking: 'budget',
    xhigh: false,
    sampling: 'free',
    prefill: true,
    lateSystem: false,
  };
  const second = { ...first, schemas: true, sampling: 'one' };
  const third = { ...second, thinking: 'either', prefill: false };
  const fourth = { ...third, thinking: 'adaptive', xhigh: true, sampling: 'none' };
  const fifth = { ...fourth, lateSystem: true };
  const unknown = { ...first, thinking: 'either', xhigh: true, schemas: true };
  for (const [expected, names] of [
    [first, ['claude-3-5-haiku-20241022', 'claude-instant-1.2', 'claude-sonnet-4-20250514', 'claude-opus-4@20250514']],
    [first, ['claude-opus-4-0', 'claude-opus-4', 'anthropic.claude-3-7-sonnet-20250219-v1:0']],
    [second, ['claude-opus-4-1-20250805', 'claude-sonnet-4-5', 'anthropic/claude-haiku-4.5', 'claude-4.5-sonnet']],
    [second, ['us.anthropic.claude-opus-4-5-20251101-v1:0', 'claude-sonnet-4-5@20250929']],
    [third, ['claude-opus-4-6', 'claude-sonnet-4-6', 'eu.anthropic.claude-sonnet-4-6']],
    [fourth, ['claude-opus-4-7', 'claude-opus-4.7', 'us.anthropic.claude-opus-4-7-v1:0']],
    [fifth, ['claude-opus-4-8', 'claude-sonnet-5', 'claude-haiku-5-5', 'claude-opus-4-10']],
    [{ ...fifth, thinking: 'always' }, ['claude-fable-5-1', 'anthropic.claude-mythos-5']],
    [{ ...fourth, thinking: 'always' }, ['claude-mythos-preview']],
    [unknown, ['claude-t', 'kimi-k2', 'amazon.nova-pro-v1:0']],
  ] as const) {
    for (const name of names) assert.deepEqual(generationOf(name), expected, name);
  }
});
