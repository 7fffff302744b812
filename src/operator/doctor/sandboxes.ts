/** What isolates sandboxes on this machine. */
import { EgressProxy, socketFolderFor } from '../../egress-proxy/index.ts';
import { examineSandboxes } from '../../sandboxes/index.ts';
import type { CommandParts } from '../command.ts';
import { type Finding, fault, note, ok } from './finding.ts';

export async function examineIsolation({
  config,
  clock,
  log,
}: Pick<CommandParts, 'config' | 'clock' | 'log'>): Promise<Finding[]> {
  const { dataDir, sandboxes: settings, outgoing } = config;
  // Only named, never started: no sandbox is created here.
  const proxySettings = () => ({ networks: config.egress.networks, extraCa: outgoing.extraCa });
  const egressProxy = new EgressProxy({ folder: socketFolderFor(dataDir), settings: proxySettings, clock, log });
  const { isolation, problems } = await examineSandboxes({
    ...{ settings, dataDir, extraCa: outgoing.extraCa, egressProxy, clock, log },
  });
  const level = isolation === null && settings.driver !== 'auto' && settings.driver !== 'none' ? fault : note;
  const findings = problems.map(({ message, remedy }) => level('sandboxes', message, remedy));
  if (isolation !== null) return [ok('sandboxes', isolation), ...findings];
  return [level('sandboxes', 'no code can be run: interns cannot start'), ...findings];
}
