/** Hard limits under kill -9, two rounds; `kill-limits.scale.ts` runs many. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { killWithinLimits } from './kill-limits.ts';

test('killed and started again, the gateway asks upstreams for no more than any limit allows', async (t) => {
  const counts = await killWithinLimits(t, { rounds: 2, seed: 23 });
  t.diagnostic(JSON.stringify(counts));
  assert.ok(counts.unreturned > 0, 'open requests were killed');
});
