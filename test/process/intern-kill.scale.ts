/** `kill -9` of gateway, agent, sandbox and database connections in every state of an intern and of its runs. */
import { test } from 'node:test';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { CASES, killRound, place, type Victim } from './intern-kill-rounds.ts';

/** Set `ROUNDS` for more, and `CASE` for those whose name begins like this. */
const ROUNDS = Number(process.env['ROUNDS'] ?? 2);
const CASE = process.env['CASE'] ?? '';
const STEP_MS = 170;

test('an intern is where the table says after kill -9', { skip }, async (t) => {
  const at = await place(t);
  for (const [name, { ends }] of Object.entries(CASES)) {
    for (const victim of Object.keys(ends) as Victim[]) {
      if (!`${name}: ${victim}`.startsWith(CASE)) continue;
      for (let round = 0; round < ROUNDS; round += 1) {
        await t.test(`${name}: ${victim}, round ${round + 1}`, () => killRound(at, name, victim, round * STEP_MS));
      }
    }
  }
});
