/** The egress proxy of sandboxes: its process starts, as the user that it should have. */
import { stayAlive } from '../../base/clock.ts';
import type { Config } from '../../base/config.ts';
import { EgressProxy, socketFolderFor } from '../../egress-proxy/index.ts';
import type { CommandParts } from '../command.ts';
import { type Finding, fault, note, ok } from './finding.ts';

export async function examineEgressProxy(
  { dataDir, egressProxy: { user, domains, ports } }: Config,
  { clock, log }: Pick<CommandParts, 'clock' | 'log'>,
): Promise<Finding> {
  const proxy = new EgressProxy({
    ...{ folder: socketFolderFor(dataDir), settings: () => ({ networks: [], extraCa: null }), clock, log },
    ...(user !== null && { user: { uid: user, gid: user } }),
  });
  // Nothing else waits for the proxy: the process would end before it answers.
  const mayEnd = stayAlive();
  try {
    const own = await proxy.probe();
    const reach = `sandboxes may reach ${domains.join(', ')} on the ports ${ports.join(', ')}`;
    if (own !== null) return ok('egress proxy', `starts as the user ${own.uid}; ${reach}`);
    const message = `starts as the user of the gateway; ${reach}`;
    return note('egress proxy', message, 'run the gateway as root to give the proxy a user of its own');
  } catch (error) {
    const advice = 'sandboxes have no network without it; check the folder and the limits of processes and memory';
    return fault('egress proxy', `cannot be started: ${(error as Error).message}`, advice);
  } finally {
    await proxy.end();
    mayEnd();
  }
}
