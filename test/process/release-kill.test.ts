/** The release of secrets under kill -9, each order once; `release-kill.scale.ts` runs many. */
import { test } from 'node:test';
import { killReleases } from './release-kill.ts';

const skip = process.platform !== 'linux' && 'needs /proc';

test('gateway and proxy are killed in any order: no process is left, and no stored secret is lost', { skip }, (t) =>
  killReleases(t, 4),
);
