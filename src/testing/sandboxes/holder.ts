/**
 * A process like a gateway, for tests that kill it: `node holder.ts FOLDER MARK` creates a sandbox with a network, starts a command
 * that does not end and whose processes have MARK in their arguments, prints the ids of all, and waits.
 */
import path from 'node:path';
import { stayAlive, systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { createAuthority, EgressProxy } from '../../egress-proxy/index.ts';
import { bubblewrapsOf } from '../../sandboxes/bubblewrap/processes.ts';
import { openSandboxes } from './sandboxes.ts';

const [folder = '', mark = ''] = process.argv.slice(2);
stayAlive();
const egressProxy = new EgressProxy({
  folder: path.join(folder, 'sockets'),
  settings: () => ({ networks: [], extraCa: null }),
  ...{ clock: systemClock, log: silentLog },
});
const { sandboxes } = openSandboxes({ after: () => {} }, { folder, egressProxy });
const authority = await createAuthority(systemClock);
const settings = { secrets: [], domains: ['*'], ports: [443], authority };
const network = { certificate: authority.certificate, load: async () => settings, onRefused: () => {} };
const box = await sandboxes.create({ id: 'box', owner: 'holder', network });
await box.writeFile('kept', mark);
// Busy in every way: a process in a session of its own, one that is stopped, one that ignores signals, one that forks.
const script = `trap '' TERM HUP INT; setsid sleep "$1" & sleep "$1" & kill -STOP $!
while :; do sleep 0.05; done & echo started; exec sleep "$1"`;
const execution = await box.exec({ argv: ['sh', '-c', script, 'sh', mark], timeoutMs: null });
execution.stdout.once('data', () => {
  const found = bubblewrapsOf(path.join(folder, 'sandboxes'));
  process.stdout.write(`${JSON.stringify({ proxy: egressProxy.pid, sandbox: found })}\n`);
});
