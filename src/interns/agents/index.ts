/**
 * Agents: the programs that run as interns. `connection.ts` is what a run needs of one; `acp.ts` provides it over the Agent Client
 * Protocol; `profiles/` says how each program is started.
 */
import { agentFolder } from '../../agent/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { AgentProfile } from './connection.ts';
import type { ConfiguredAgent } from './profiles/configured.ts';
import { gatehouseProfile } from './profiles/gatehouse.ts';
import { installedProfile } from './profiles/installed.ts';

export * from './connection.ts';

/** Ships with the gateway. */
export const DEFAULT_AGENT = 'gatehouse';

/**
 * By name.
 * @param configured those that the operator installed, by name
 * @param folder with the `main.js` of the agent that ships with the gateway
 */
export function agentProfiles(
  clock: Clock,
  configured: Readonly<Record<string, ConfiguredAgent>>,
  folder: string = agentFolder(),
): ReadonlyMap<string, AgentProfile> {
  const installed = Object.entries(configured).map(([name, agent]) => installedProfile(name, agent, clock));
  return new Map([gatehouseProfile(clock, folder), ...installed].map((profile) => [profile.name, profile]));
}
