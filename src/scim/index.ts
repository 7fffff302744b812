/**
 * SCIM: who an identity provider says belongs to the organization. `/scim/v2` takes its users and groups (RFC 7643, RFC
 * 7644), with tokens that serve nothing else; a mapping gives the members of a group a role in a workspace for as long as
 * they are in it. Not here: members and keys themselves (`access/`), and what a membership shows (`workspaces/`).
 */
export { endMappings } from './mappings/operations.ts';
export { scimMigrations } from './migrations/index.ts';
export { oneWriter } from './one-writer.ts';
export { type ScimParts, scimOperations } from './operations.ts';
export { type SyncParts, syncJob } from './sync/job.ts';
