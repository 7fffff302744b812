/** The long kill loop (every request has exactly one row): `node --test test/process/kill.scale.ts`; GATEHOUSE_KILL_ROUNDS rounds a phase, 12 if not set. */
import { test } from 'node:test';
import { killRounds, PHASES } from './kill-rounds.ts';

const ROUNDS = Number(process.env['GATEHOUSE_KILL_ROUNDS'] ?? 12);

for (const name of Object.keys(PHASES)) {
  test(`killed ${name}, ${ROUNDS} times`, async (t) => {
    const seed = Math.ceil(Math.random() * 1e9);
    t.diagnostic(`seed ${seed}`);
    t.diagnostic(JSON.stringify(await killRounds(t, [name], { rounds: ROUNDS, seed })));
  });
}
