/** Kill -9 at each request for the vectors of a file. */
import { test } from 'node:test';
import { killRound } from './vector-store-kill.ts';

for (const nth of [1, 2, 3]) {
  test(`a file is added once after kill -9 | request ${nth} for vectors`, (t) => killRound(t, nth));
}
