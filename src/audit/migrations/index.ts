/** The table of the audit log, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { auditLog } from './0120-audit-log.ts';

export const auditMigrations: readonly Migration[] = [auditLog];
