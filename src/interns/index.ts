/**
 * Interns: hosted agents, each with a sandbox, a persistent workspace, a vault and an API key of its own.
 *
 *  - `operations.ts` is the resource; `create-intern.ts` and `change-intern.ts` are its changes
 *  - `lifecycle.ts` is the table of states, `work/` what happens between two of them: agents start in sandboxes, workspaces are archived
 *  - `chat/` is the chat: a run is one turn of the agent (`chat/run.ts`), a response reads it (`chat/response.ts`)
 *  - `forwarding/` passes requests on to the process that holds the intern
 *  - `agents/` is the connection to the program in the sandbox
 *  - `runtime.ts` is what one process has of all that
 *
 * Not here: how code is isolated (`sandboxes/`), secrets and their release (`vault/`, `egress-proxy/`), model calls (`inference/`).
 */
export { type AgentProfile, agentProfiles } from './agents/index.ts';
export { type ChatOperationParts, chatOperations } from './chat/operations.ts';
export { sealedPeerKeys } from './forwarding/endpoint.ts';
export { internMigrations } from './migrations/index.ts';
export { internOperations } from './operations.ts';
export { InternRuntime } from './runtime.ts';
export { vaultsOfIntern } from './vaults.ts';
export { endInterns } from './workspace-end.ts';
