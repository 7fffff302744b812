/** The release of secrets under kill -9 at length: each order twelve times. */
import { test } from 'node:test';
import { killReleases } from './release-kill.ts';

test('gateway and proxy are killed twelve times in each order', (t) => killReleases(t, 48));
