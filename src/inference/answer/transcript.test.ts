import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Allowance } from '../../base/allowance.ts';
import type { Turn } from '../../formats/conversation/conversation.ts';
import { eventsOf } from '../../formats/conversation/replay.ts';
import { Transcript } from './transcript.ts';

const word = fc.string({ maxLength: 40 });
const part = fc.oneof(
  word.map((text) => ({ type: 'text' as const, text })),
  word.map((text) => ({ type: 'reasoning' as const, text, origin: 'anthropic' as const })),
  fc.record({ type: fc.constant('toolCall' as const), id: word, name: word, arguments: word }),
);
const turn = fc
  .array(part, { maxLength: 12 })
  .map((parts): Turn => ({ choices: [{ parts, finish: { unified: 'stop', native: null } }] }) as Turn);

const contentOf = ({ completion, reasoning, calls, truncated }: Transcript) => ({
  completion,
  reasoning,
  calls,
  truncated,
});

test('a stream and its whole answer give the same transcript, and nothing exceeds the limit or the buffer', () => {
  fc.assert(
    fc.property(turn, fc.nat(400), fc.nat(400), (answer, maxBytes, size) => {
      const written = () => {
        const memory = new Allowance(size);
        return new Transcript({ maxBytes, take: (units) => memory.take(units) });
      };
      const [whole, streamed] = [written(), written()];
      whole.turn(answer);
      for (const event of eventsOf(answer)) streamed.event(event);
      assert.deepEqual(contentOf(streamed), contentOf(whole));
      const { completion, reasoning, calls, truncated } = whole;
      const kept = [completion, reasoning, ...calls.flatMap((call) => Object.values(call))].join('').length;
      assert.ok(kept <= Math.min(maxBytes, size));
      const said = answer.choices[0]!.parts.reduce((sum, one) => {
        const texts = one.type === 'toolCall' ? [one.id, one.name, one.arguments] : [(one as { text: string }).text];
        return sum + texts.join('').length;
      }, 0);
      assert.equal(truncated, kept < said);
    }),
  );
});
