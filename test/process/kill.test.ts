/** Every request has exactly one row under kill -9, one round in each phase; `kill.scale.ts` runs many. */
import { test } from 'node:test';
import { killRounds, PHASES } from './kill-rounds.ts';

test(`killed ${Object.keys(PHASES).join(', ')}: every request that the upstream saw has one row, and the counter is their sum`, async (t) => {
  t.diagnostic(JSON.stringify(await killRounds(t, Object.keys(PHASES), { rounds: 1, seed: 7 })));
});

test('killed mid-stream with two workers: the next start enters what both had open', async (t) => {
  t.diagnostic(JSON.stringify(await killRounds(t, ['mid-stream'], { rounds: 1, seed: 11, workers: 2 })));
});
