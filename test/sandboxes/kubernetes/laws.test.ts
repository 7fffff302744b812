/** What works in a sandbox of Kubernetes: the laws of all sandboxes. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { SandboxLimits } from '../../../src/sandboxes/index.ts';
import { openFolder } from '../../../src/testing/egress-proxy/supervised.ts';
import { openKubernetes, skip, startCluster } from '../../../src/testing/kubernetes/sandboxes.ts';
import { shell } from '../../../src/testing/sandboxes/sandboxes.ts';
import { sandboxLaws } from '../laws.ts';

const ends: (() => unknown)[] = [];
const place = { after: (end: () => unknown) => void ends.unshift(end) };

describe('commands in pods of Sandbox objects', { skip }, () => {
  after(async () => {
    for (const end of ends) await end();
  });
  const folder = openFolder(place);
  sandboxLaws({
    ...{ place, folder },
    async open(blobs, program) {
      const cluster = await startCluster(place, folder, { hasSandboxes: true, programs: { tool: program } });
      return {
        sandboxes: openKubernetes(place, cluster, { folder: openFolder(place), blobs }).sandboxes,
        others: openKubernetes(place, cluster, { folder: openFolder(place) }).sandboxes,
      };
    },
  });
  async function create(limits: Partial<SandboxLimits>) {
    const cluster = await startCluster(place, folder, { hasSandboxes: true });
    const { sandboxes } = openKubernetes(place, cluster, { folder: openFolder(place) });
    return sandboxes.create({ id: 'bounded', owner: 'test', limits });
  }

  test('a command has limits of open files and, in a pod with users of its own, of processes', async () => {
    const sandbox = await create({ processes: 100 });
    const { out } = await shell(sandbox, 'cat /proc/self/limits');
    assert.match(out, /^Max open files +8192 /m);
    assert.match(out, /^Max processes +164 /m);
    await sandbox.destroy();
  });

  test('a process that replaces itself all the time ends with its command', async () => {
    const sandbox = await create({});
    for (let round = 0; round < 5; round += 1) await shell(sandbox, `perl -e 'while (1) { exit if fork }'`);
    const { out } = await shell(sandbox, 'cat /proc/[0-9]*/comm');
    assert.doesNotMatch(out, /perl/);
    await sandbox.destroy();
  });
});
