/** `kill -9` of gateway, proxy and sandbox: twelve rounds in each order, and of the gateway at moments while it makes a sandbox. */
import { test } from 'node:test';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { killRound, ORDERS } from './kill-rounds.ts';

const ROUNDS = 12;

for (const order of ORDERS) {
  for (let round = 1; round <= ROUNDS; round++) {
    test(`kill -9 of ${order.join(', ')}, round ${round}`, { skip }, (t) => killRound(t, order));
  }
}
for (let round = 1; round <= 2 * ROUNDS; round++) {
  const atMs = 300 + 50 * round;
  test(`kill -9 of the gateway ${atMs} ms after its start`, { skip }, (t) => killRound(t, ['gateway'], atMs));
}
