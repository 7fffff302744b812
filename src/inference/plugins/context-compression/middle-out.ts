/** Which units of a history are dropped so that the rest fits: whole ones, from the middle. Pure. */
import type { HistoryUnit } from '../../../formats/conversation/history.ts';

export interface SizedUnit extends HistoryUnit {
  tokens: number;
}

/**
 * The units to drop, in order; undefined if the rest would not fit even so. Instructions, the first unit, and everything
 * from the last question on are kept. Of an agent's last task only the steps between its first and its last are dropped.
 * @param excess the tokens that have to go
 */
export function middleOut(units: readonly SizedUnit[], excess: number): readonly SizedUnit[] | undefined {
  const droppable = droppableOf(units);
  let low = Math.ceil(droppable.length / 2);
  let high = low;
  let left = excess;
  // Grows from the middle, towards the older side first.
  while (left > 0 && high - low < droppable.length) {
    const older = low >= droppable.length - high;
    if (older) low -= 1;
    else high += 1;
    left -= droppable[older ? low : high - 1]!.tokens;
  }
  return left > 0 ? undefined : droppable.slice(low, high);
}

function droppableOf(units: readonly SizedUnit[]): SizedUnit[] {
  const first = units.findIndex(({ pinned }) => !pinned);
  const last = units.findLastIndex(({ pinned }) => !pinned);
  const question = units.findLastIndex(({ asks }) => asks);
  return units.filter(({ pinned }, index) => !pinned && index !== first && index !== last && index !== question);
}
