/** The agent that ships with the gateway, in a sandbox of each driver. */
import path from 'node:path';
import { test } from 'node:test';
import { skip, startCluster } from '../../src/testing/kubernetes/sandboxes.ts';
import { sandboxedRun } from './sandboxed-run.ts';

test('an intern runs in bubblewrap, and its model calls go through the gateway without a key in the sandbox', (t) =>
  sandboxedRun(t, async (folder) => ({ folder: path.join(folder, 'sandboxes') })));

test('an intern runs in a pod in the same way', { skip }, (t) =>
  sandboxedRun(t, async (folder, agent) => {
    const { kubeconfig, image, host } = await startCluster(t, folder, { programs: { 'gatehouse-agent': agent } });
    return { driver: 'kubernetes', kubernetes: { image, kubeconfig, egress_host: host } };
  }),
);
