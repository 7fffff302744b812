/** The agent that ships with the gateway (`src/agent`). */
import type { Clock } from '../../../base/clock.ts';
import { connectOverAcp } from '../acp.ts';
import type { AgentProfile } from '../connection.ts';

const LITTLE_MEMORY = ['--max-old-space-size=64', '--max-semi-space-size=2'];

/** @param folder with the agent's `main.js` */
export function gatehouseProfile(clock: Clock, folder: string): AgentProfile {
  const modes = { manual: 'manual', 'self-drive': 'self-drive' } as const;
  return {
    name: 'gatehouse',
    command({ model, instructions }, { node, home, gateway }) {
      const settings = `${home}/.gatehouse-agent/settings.json`;
      return {
        argv: [node, ...LITTLE_MEMORY, '/opt/gatehouse-agent/main.js', settings],
        environment: {},
        programs: [{ name: 'gatehouse-agent', path: folder }],
        files: { [settings]: JSON.stringify({ gateway, model, instructions }) },
      };
    },
    connect: (stdio, { workspace }) => connectOverAcp(stdio, { workspace, modes, steering: 'request', clock }),
  };
}
