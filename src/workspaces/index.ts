/**
 * Workspaces: an organization's teams, with their settings, members and budgets. What a workspace prescribes to requests
 * is compiled here when it changes (`terms.ts`), carried by every caller of its keys (`access/`), and enforced by
 * `inference/`. Not here: keys and organizations (`access/`), what is spent and held (`spend/`), guardrails, and the
 * keeping of inputs and outputs (`transcripts/`), of which a workspace only says whose.
 */
export { defaultGuardrailId } from './derived-id.ts';
export { workspaceMigrations } from './migrations/index.ts';
export { type WorkspaceOperationParts, workspaceOperations } from './operations.ts';
export { createTerms } from './terms.ts';
