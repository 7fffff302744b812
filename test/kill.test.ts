/** Promise 1 under kill -9, a few rounds in each phase; `kill.scale.ts` runs many. */
import { test } from 'node:test';
import { killRounds, PHASES } from './kill-rounds.ts';

for (const [name, phase] of Object.entries(PHASES)) {
  test(`killed ${name}: every request that the upstream saw has one row, and the counter is their sum`, async (t) => {
    t.diagnostic(JSON.stringify(await killRounds(t, phase, 2, 7)));
  });
}
