import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  BATCH_STATES,
  type BatchEvent,
  type BatchState,
  isTerminal,
  nextState,
  storedId,
  TERMINAL_STATES,
  wireId,
} from './batch.ts';

const EVENTS: readonly BatchEvent[] = ['start', 'unrunnable', 'ran', 'closed', 'overdue', 'cancel', 'stopped'];

/** The documented transitions. */
const PUBLIC: Readonly<Record<BatchState, readonly BatchState[]>> = {
  validating: ['in_progress', 'failed', 'expired', 'cancelling'],
  in_progress: ['finalizing', 'expired', 'cancelling'],
  finalizing: ['completed', 'cancelling'],
  cancelling: ['cancelled', 'cancelling'],
  completed: [],
  failed: [],
  expired: [],
  cancelled: [],
};

test('whatever happens in whatever order, a batch moves along the public transitions and stays in its final state', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...EVENTS), { maxLength: 30 }), (events) => {
      let state: BatchState = 'validating';
      for (const event of events) {
        const next = nextState(state, event);
        if (next === undefined) continue;
        assert.ok(PUBLIC[state].includes(next), `${state} -> ${next}`);
        assert.ok(!isTerminal(state));
        state = next;
      }
    }),
  );
});

test('each public transition can happen, and from each state a final one can be reached', () => {
  for (const state of BATCH_STATES) {
    const reached = new Set(EVENTS.map((event) => nextState(state, event)).filter((next) => next !== undefined));
    assert.deepEqual([...reached].toSorted(), [...PUBLIC[state]].toSorted(), state);
    const ends = (from: BatchState, seen: ReadonlySet<BatchState>): boolean =>
      isTerminal(from) || PUBLIC[from].some((next) => !seen.has(next) && ends(next, new Set([...seen, next])));
    assert.ok(ends(state, new Set([state])), state);
  }
  assert.deepEqual(TERMINAL_STATES, ['completed', 'failed', 'expired', 'cancelled']);
});

test('a wire id names its batch, and no other text is taken for one', () => {
  fc.assert(fc.property(fc.uuid(), (id) => assert.equal(storedId(wireId(id)), id)));
  for (const text of ['', 'batch_', 'batch_x', 'gen-0190', `batch_${'z'.repeat(32)}`, `batch_${'0'.repeat(33)}`]) {
    assert.equal(storedId(text), undefined, text);
  }
});
