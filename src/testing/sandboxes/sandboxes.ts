/** Real sandboxes of this machine, in a folder of the test. Where none can be made, tests say so and skip. */
import path from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { DEFAULT_SANDBOXES, type SandboxesSettings } from '../../base/config.ts';
import { silentLog } from '../../base/log.ts';
import type { Blobs } from '../../blobs/index.ts';
import { EgressProxy } from '../../egress-proxy/index.ts';
import { examineSandboxes, run, type Sandbox, Sandboxes } from '../../sandboxes/index.ts';
import { openFolder } from '../egress-proxy/supervised.ts';

interface Place {
  after(run: () => unknown): void;
}

interface Changes {
  settings?: Partial<SandboxesSettings>;
  egressProxy?: EgressProxy;
  extraCa?: string | null;
  blobs?: Blobs;
  /** For workspaces; every user can enter it. */
  folder?: string;
}

function partsIn(folder: string, { settings, egressProxy, extraCa = null, blobs }: Changes = {}) {
  const shared = { clock: systemClock, log: silentLog };
  const noSettings = () => ({ networks: [], extraCa });
  return {
    settings: { ...DEFAULT_SANDBOXES, folder: path.join(folder, 'sandboxes'), ...settings },
    ...{ dataDir: folder, extraCa, blobs: blobs as Blobs, ...shared },
    egressProxy:
      egressProxy ?? new EgressProxy({ folder: path.join(folder, 'egress'), settings: noSettings, ...shared }),
  };
}

/** What isolates sandboxes here; `isolation` is null where nothing does. */
export const machine = await examineSandboxes(partsIn('/nonexistent'));

/** For the `skip` of tests. */
export const skip =
  machine.isolation === null &&
  `no sandbox can be made here: ${machine.problems.map(({ message }) => message).join('; ')}`;

/** Whether limits hold for a sandbox as a whole. */
export const hasGroups = machine.isolation?.includes('cgroup') ?? false;

/** Ended after the tests, together with all sandboxes. */
export function openSandboxes(t: Place, changes: Changes = {}) {
  const folder = changes.folder ?? openFolder(t);
  const sandboxes = new Sandboxes(partsIn(folder, changes));
  t.after(() => sandboxes.close());
  return { sandboxes, folder };
}

/** Runs a script of the shell with these arguments. */
export async function shell(sandbox: Pick<Sandbox, 'exec'>, script: string, ...args: string[]) {
  const { ending, stdout, stderr } = await run(sandbox, {
    argv: ['sh', '-c', script, 'sh', ...args],
    timeoutMs: 60_000,
  });
  return { ...ending, out: stdout.toString(), errors: stderr.toString() };
}
