/** What works in a sandbox of Kubernetes: the laws of all sandboxes. */
import { after, describe } from 'node:test';
import { openFolder } from '../../../src/testing/egress-proxy/supervised.ts';
import { openKubernetes, skip, startCluster } from '../../../src/testing/kubernetes/sandboxes.ts';
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
});
