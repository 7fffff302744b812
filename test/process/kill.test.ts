/** Every request has exactly one row under kill -9, a few rounds in each phase; `kill.scale.ts` runs many. */
import { test } from 'node:test';
import { killRounds, PHASES } from './kill-rounds.ts';

for (const [name, phase] of Object.entries(PHASES)) {
  test(`killed ${name}: every request that the upstream saw has one row, and the counter is their sum`, async (t) => {
    t.diagnostic(JSON.stringify(await killRounds(t, phase, { rounds: 2, seed: 7 })));
  });
}

test('killed mid-stream with two workers: the next start enters what both had open', async (t) => {
  const phase = PHASES['mid-stream']!;
  t.diagnostic(JSON.stringify(await killRounds(t, phase, { rounds: 2, seed: 11, workers: 2 })));
});
