/**
 * The audit log: who changed what in the control plane, before and after, in a row that comes and goes with the change
 * itself and that nobody can alter later. Whoever changes something calls `recordChange` inside the transaction of the
 * change ([guide](../../docs/guides/record-a-change.md)). Not here: what was asked of models (`spend`, `transcripts`), and
 * requests that changed nothing (the log).
 */
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
