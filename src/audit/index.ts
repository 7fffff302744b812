/**
 * The audit log: who changed what in the control plane, before and after. An entry commits together with its change and
 * cannot be altered later. Code that changes something does it with `changeAs`
 * ([guide](../../docs/guides/record-a-change.md)). Not here: requests to models (`spend`, `transcripts`), and requests
 * that change nothing (the log).
 */
export { type AnnouncedChange, type Changed, changeAs } from './change.ts';
export { auditMigrations } from './migrations/index.ts';
export { type AuditParts, auditOperations } from './operations.ts';
export {
  type Author,
  authorOf,
  type Change,
  gatewayAuthor,
  operatorAuthor,
  recordChange,
  recordOnce,
} from './record.ts';
