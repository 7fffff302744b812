/**
 * Agents: the programs that run as interns. `connection.ts` is what a run needs of one; `acp.ts` provides it over the Agent Client
 * Protocol; `profiles/` says how each program is started.
 */
import { agentFolder } from '../../agent/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { AgentInstallation } from '../../base/config.ts';
import type { AgentProfile } from './connection.ts';
import { gatehouseProfile } from './profiles/gatehouse.ts';
import { installedProfile } from './profiles/installed.ts';

export * from './connection.ts';

/**
 * By name.
 * @param installations those of the operator
 * @param folder with the `main.js` of the agent that ships with the gateway
 */
export function agentProfiles(
  clock: Clock,
  installations: readonly AgentInstallation[],
  folder: string = agentFolder(),
): ReadonlyMap<string, AgentProfile> {
  const installed = installations.map((each) => installedProfile(each, clock));
  return new Map([gatehouseProfile(clock, folder), ...installed].map((profile) => [profile.name, profile]));
}
