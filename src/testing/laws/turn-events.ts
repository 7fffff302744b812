/** The rules that every decoder's events keep (formats/conversation/conversation.ts, TurnEvent). */
import assert from 'node:assert/strict';
import type { TurnEvent } from '../../formats/conversation/conversation.ts';

/**
 * Fails on events that break the contract: parts are numbered in the order of their starts, deltas and stops belong to
 * open parts, every part is stopped before its choice finishes, and nothing follows the end or a failure.
 */
export function checkTurnEvents(events: readonly TurnEvent[]): void {
  const choices = new Map<number, { parts: number; open: Set<number>; finished: boolean }>();
  let over = false;
  for (const event of events) {
    assert.equal(over, false, `${event.type} behind the last event`);
    if (event.type === 'end' || event.type === 'failure') over = true;
    if (!('choice' in event)) continue;
    const choice = choices.get(event.choice) ?? { parts: 0, open: new Set(), finished: false };
    choices.set(event.choice, choice);
    assert.equal(choice.finished, false, `${event.type} behind the finish`);
    if (event.type === 'partStart') {
      assert.equal(event.index, choice.parts++, 'parts are numbered in the order of their starts');
      choice.open.add(event.index);
    } else if (event.type === 'partDelta')
      assert.ok(choice.open.has(event.index), 'a delta of a part that is not open');
    else if (event.type === 'partStop') assert.ok(choice.open.delete(event.index), 'a stop of a part that is not open');
    else if (event.type === 'finish') {
      assert.equal(choice.open.size, 0, 'a part is open at the finish');
      choice.finished = true;
    }
  }
}
