/** `kill.scale.ts` has more rounds. */
import { test } from 'node:test';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { killRound, ORDERS } from './kill-rounds.ts';

for (const order of [ORDERS[0]!, ORDERS[3]!, ORDERS[4]!]) {
  test(`nothing is left after kill -9 of ${order.join(', ')}, but the workspace`, { skip }, (t) => killRound(t, order));
}
