/**
 * The agent that ships with the gateway: a program that runs in the sandbox of an intern and speaks the Agent Client Protocol
 * on its standard input and output. Its model calls go to the gateway's chat completions, without a key: the way out of the
 * sandbox adds it. Not here: how the gateway talks to agents, its own among them (`interns/agents`).
 */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A folder of this machine with the agent as one file, `main.js`. Run it with `node main.js SETTINGS`. */
export function agentFolder(): string {
  // The bundle of the gateway has it next to itself; sources have it where `npm run build` puts it.
  const bundled = import.meta.url.endsWith('.js') ? './agent/' : '../../dist/agent/';
  const folder = fileURLToPath(new URL(bundled, import.meta.url));
  if (!existsSync(folder)) throw new Error(`the agent is not built: there is no folder ${folder} (npm run build)`);
  return folder;
}
