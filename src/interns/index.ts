/**
 * Interns: agents that live in a sandbox of their own, with a workspace that lasts, an own vault and an own API key.
 *
 *  - `operations.ts` is the resource; `create-intern.ts` and `change-intern.ts` are its changes
 *  - `lifecycle.ts` is the table of states, `work/` what happens between two of them
 *
 * Not here: secrets and their release (`vault/`, `egress-proxy/`), model calls (`inference/`).
 */

export { internMigrations } from './migrations/index.ts';
export { type InternParts, internOperations } from './operations.ts';
export { vaultsOfIntern } from './vaults.ts';
export { internWork } from './work/work.ts';
export { endInterns } from './workspace-end.ts';
