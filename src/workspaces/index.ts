/**
 * Workspaces: an organization's teams, with their settings, members and budgets. `terms.ts` compiles the workspace
 * rules when they change; every caller of a workspace's keys carries them (`access/`), and `inference/` enforces them.
 * Not here: keys and organizations (`access/`), spend and reservations (`spend/`), guardrails, and the storage of
 * inputs and outputs (`transcripts/`); a workspace only chooses whose are kept.
 */
export { defaultGuardrailId } from './derived-id.ts';
export { type ImportedTeam, importTeam } from './imported.ts';
export { workspaceMigrations } from './migrations/index.ts';
export { type WorkspaceOperationParts, workspaceOperations } from './operations.ts';
export { createTerms } from './terms.ts';
