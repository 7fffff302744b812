/** Hard limits under kill -9 at length: GATEHOUSE_KILL_ROUNDS rounds, 12 if not set, with one worker and with two. */
import { test } from 'node:test';
import { killWithinLimits } from './kill-limits.ts';

const ROUNDS = Number(process.env['GATEHOUSE_KILL_ROUNDS'] ?? 12);

for (const workers of [1, 2]) {
  test(`killed ${ROUNDS} times with ${workers} workers, every limit holds`, async (t) => {
    for (let run = 0; run < 4; run++) {
      const seed = Math.ceil(Math.random() * 1e9);
      t.diagnostic(`seed ${seed}`);
      t.diagnostic(JSON.stringify(await killWithinLimits(t, { rounds: ROUNDS, seed, workers })));
    }
  });
}
