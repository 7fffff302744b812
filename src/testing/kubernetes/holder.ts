/**
 * A process like a gateway, for tests that kill it: `node holder.ts KUBECONFIG FOLDER MARK` creates a sandbox in the fake cluster, starts a
 * command that does not end and whose processes have MARK in their arguments, says so, and waits.
 */
import { stayAlive } from '../../base/clock.ts';
import { openKubernetes } from './sandboxes.ts';

const [kubeconfig = '', folder = '', mark = ''] = process.argv.slice(2);
stayAlive();
const { sandboxes } = openKubernetes({ after: () => {} }, { kubeconfig }, { folder });
const box = await sandboxes.create({ id: 'killed', owner: 'holder' });
await box.writeFile('kept', mark);
const script = `trap '' TERM HUP INT; setsid sleep "$1" & sleep "$1" & kill -STOP $!; echo started; exec sleep "$1"`;
const execution = await box.exec({ argv: ['sh', '-c', script, 'sh', mark], timeoutMs: null });
execution.stdout.once('data', () => process.stdout.write('started\n'));
