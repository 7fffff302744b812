/** What works in a sandbox of bubblewrap. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { bubblewrapsOf } from '../../src/sandboxes/bubblewrap/processes.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { openFolder } from '../../src/testing/egress-proxy/supervised.ts';
import { openSandboxes, shell, skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { sandboxLaws } from './laws.ts';

const ends: (() => unknown)[] = [];
const place = { after: (end: () => unknown) => void ends.unshift(end) };

describe('commands', { skip }, () => {
  after(async () => {
    for (const end of ends) await end();
  });
  const folder = openFolder(place);
  const box = sandboxLaws({
    ...{ place, folder },
    open: async (blobs) => ({
      sandboxes: openSandboxes(place, { folder, blobs }).sandboxes,
      others: openSandboxes(place, { folder }).sandboxes,
    }),
  });

  test('an end from outside is reported, and other commands continue', async () => {
    const known = bubblewrapsOf(path.join(folder, 'sandboxes'));
    const victim = await box().exec({ argv: ['sleep', '1000'] });
    const appeared = () => bubblewrapsOf(path.join(folder, 'sandboxes')).find((each) => !known.includes(each));
    process.kill(await until(appeared, 'bubblewrap runs'), 'SIGKILL');
    assert.deepEqual(await victim.ended, { code: null, reason: 'lost' });
    assert.equal((await shell(box(), 'echo fine')).out, 'fine\n');
  });
});
