import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import type { HistoryWords } from '../../../formats/conversation/history.ts';
import { unitsOf } from '../../../formats/conversation/history.ts';
import { chat, messages, responses } from '../../../formats/index.ts';
import { samples } from '../../../testing/laws/samples.ts';
import { middleOut } from './middle-out.ts';

type Step = 'system' | 'ask' | 'say' | 'call' | 'think';
type Json = Record<string, unknown>;

/** The items of a conversation in a format, each step with its own text and ids. */
const WRITERS: Record<string, { words: HistoryWords; write(step: Step, n: number): Json[] }> = {
  chat: {
    words: chat.history,
    write: (step, n) => {
      const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
      if (step === 'system') return [{ role: 'system', content: `s${n}` }];
      if (step === 'ask') return [{ role: 'user', content: `q${n}` }];
      if (step !== 'call') return [{ role: 'assistant', content: `a${n}` }];
      return [
        { role: 'assistant', tool_calls: [call(`c${n}`), call(`d${n}`)] },
        { role: 'tool', tool_call_id: `d${n}`, content: 'r' },
        { role: 'tool', tool_call_id: `c${n}`, content: 'r' },
      ];
    },
  },
  messages: {
    words: messages.history,
    write: (step, n) => {
      if (step === 'system' || step === 'ask') return [{ role: 'user', content: `q${n}` }];
      if (step !== 'call') return [{ role: 'assistant', content: `a${n}` }];
      const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'r' });
      return [
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: `c${n}`, name: 'f', input: {} },
            { type: 'tool_use', id: `d${n}`, name: 'f', input: {} },
          ],
        },
        { role: 'user', content: [result(`c${n}`), result(`d${n}`)] },
      ];
    },
  },
  responses: {
    words: responses.history,
    write: (step, n) => {
      if (step === 'system') return [{ role: 'developer', content: `s${n}` }];
      if (step === 'ask') return [{ type: 'message', role: 'user', content: `q${n}` }];
      if (step === 'say') return [{ type: 'message', role: 'assistant', content: `a${n}` }];
      const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' });
      const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'r' });
      const thinking = { type: 'reasoning', id: `rs${n}`, summary: [] };
      if (step === 'think') return [thinking, { type: 'message', role: 'assistant', content: `a${n}` }];
      return [thinking, call(`c${n}`), call(`d${n}`), output(`d${n}`), output(`c${n}`)];
    },
  },
};

const steps = fc.array(fc.constantFrom<Step>('system', 'ask', 'say', 'call', 'think'), { minLength: 1, maxLength: 30 });

for (const [format, { words, write }] of Object.entries(WRITERS)) {
  test(`${format}: what is left has every call with its result, the instructions, the first turn and the last question`, () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 40 }), (taken, excess) => {
        const items = taken.flatMap((step, n) => write(step, n));
        const units = unitsOf(items, words);
        assert.deepEqual(
          units.flatMap(({ start, end }) => items.slice(start, end)),
          items,
        );
        const sized = units.map((unit) => ({ ...unit, tokens: unit.end - unit.start }));
        const dropped = middleOut(sized, excess);
        if (dropped === undefined) return;
        assert.ok(dropped.reduce((sum, { tokens }) => sum + tokens, 0) >= excess);
        const kept = items.filter((_, at) => !dropped.some(({ start, end }) => at >= start && at < end));
        const read = kept.map((item) => words.item(item));
        const calls = read.flatMap((item) => item.calls ?? []).filter((id) => /^[cd]\d/.test(id));
        assert.deepEqual(calls.toSorted(), read.flatMap((item) => item.results ?? []).toSorted());
        const pinned = (all: Json[]) => all.filter((item) => words.item(item).kind === 'pinned');
        assert.deepEqual(pinned(kept), pinned(items));
        const turns = items.filter((item) => words.item(item).kind !== 'pinned');
        const asked = items.filter((item) => words.item(item).kind === 'user').at(-1);
        assert.ok(kept.includes(turns[0]!) && kept.includes(turns.at(-1)!));
        if (asked !== undefined) assert.ok(kept.includes(asked));
        // Reasoning is followed by what it led to.
        kept.forEach((item, at) => {
          if (item['type'] === 'reasoning') assert.equal(kept[at + 1], items[items.indexOf(item) + 1]);
        });
      }),
      { numRuns: samples(300) },
    );
  });
}

test('as few units go as the excess needs, from the middle outwards', () => {
  const units = Array.from({ length: 9 }, (_, n) => ({
    start: n,
    end: n + 1,
    asks: n === 8,
    pinned: false,
    tokens: 10,
  }));
  const positions = (excess: number) => middleOut(units, excess)?.map(({ start }) => start);
  assert.deepEqual(positions(1), [4]);
  assert.deepEqual(positions(11), [3, 4]);
  assert.deepEqual(positions(21), [3, 4, 5]);
  assert.deepEqual(positions(70), [1, 2, 3, 4, 5, 6, 7]);
  assert.equal(positions(71), undefined);
});
