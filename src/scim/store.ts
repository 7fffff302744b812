/** The SQL shared by users, groups and mappings. Callers open the transactions and supply ids and times. */
import type { Queryable } from '../storage/database.ts';

/**
 * Locks out all other SCIM writers until the transaction ends, so that grants computed from groups are still right at
 * commit. Always take this lock first.
 */
export async function lockOrganization(tx: Queryable, organizationId: string): Promise<void> {
  await tx.query('select 1 from organizations where id = $1 for no key update', [organizationId]);
}
