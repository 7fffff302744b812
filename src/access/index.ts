/**
 * Access: authentication and authorization. Owns organizations, members, the default workspace and keys; `authenticate`
 * turns a request's headers into a `Caller` from memory, and `permit` evaluates the access rule of an operation. Not here: what a caller may spend (`spend/`), and which models
 * and filters apply to it (`guardrails/`).
 */
export { type Access, type AccessParts, createAccess, type GuardrailsOf, type TermsOf } from './access.ts';
export {
  type AccessTokens,
  GUARDRAILS_TOPIC,
  KEYS_TOPIC,
  MEMBERS_TOPIC,
  WORKSPACES_TOPIC,
} from './authenticator.ts';
export type { ChosenTokens, FirstKey } from './bootstrap.ts';
export {
  type Caller,
  callerWithoutRules,
  type GuardrailTerms,
  type IoLoggingTerms,
  type KeyFacts,
  type KeyKind,
  type LimitReset,
  NO_GUARDRAILS,
  NO_TERMS,
  type PresetTerms,
  type WorkspaceTerms,
} from './caller.ts';
export { type ImportedKey, importKey } from './imported-keys.ts';
export { endInternKey, endSandboxSecret, issueInternKey, startSandboxSecret } from './intern-keys.ts';
export { followInternProgramme } from './intern-programme.ts';
export { checkNewKey, type IssuedKey, issueKey, issueMemberKey } from './issue.ts';
export { accessMigrations } from './migrations/index.ts';
export { keyOperations, type OperationParts as AccessOperationParts } from './operations.ts';
export {
  createOperatorKey,
  listOperatorKeys,
  type OperatorKey,
  type OperatorKeyBody,
  type OperatorKeysParts,
  revokeOperatorKey,
} from './operator-keys.ts';
export { type AccessChecks, checkKind } from './permit.ts';
export {
  defaultWorkspaceId,
  hadWorkspace,
  hasMember,
  hasWorkspace,
  namedKeys,
  organizationId,
  pastKeyIds,
} from './store.ts';
export { hashToken, isHash, isToken, keyNumber, maskToken } from './token.ts';
export { type KeyUsage, NO_USAGE, type Spent, type UsageOf } from './usage.ts';
export { chosenWorkspace } from './workspace-choice.ts';
