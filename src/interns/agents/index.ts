/**
 * Agents: the programs that are interns. `connection.ts` is what a run needs of one; `acp.ts` provides it over the Agent Client
 * Protocol; `profiles/` says how each program is started.
 */
import { agentFolder } from '../../agent/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { AgentProfile } from './connection.ts';
import { gatehouseProfile } from './profiles/gatehouse.ts';

export * from './connection.ts';

/** Ships with the gateway. */
export const DEFAULT_AGENT = 'gatehouse';

/**
 * By name.
 * @param folder with the `main.js` of the agent that ships with the gateway
 */
export function agentProfiles(clock: Clock, folder: string = agentFolder()): ReadonlyMap<string, AgentProfile> {
  return new Map([[DEFAULT_AGENT, gatehouseProfile(clock, folder)]]);
}
