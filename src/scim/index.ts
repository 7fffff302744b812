/**
 * SCIM: members of the organization as an identity provider manages them. `/scim/v2` accepts users and groups (RFC
 * 7643, RFC 7644), with tokens that are valid nowhere else. A mapping gives the members of a group a role in a
 * workspace while they are in it. Not here: members and keys themselves (`access/`), and memberships on the wire
 * (`workspaces/`).
 */
export { endMappings } from './mappings/operations.ts';
export { scimMigrations } from './migrations/index.ts';
export { oneWriter } from './one-writer.ts';
export { type ScimParts, scimOperations } from './operations.ts';
export { type SyncParts, syncJob } from './sync/job.ts';
