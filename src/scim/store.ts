/** The SQL that users, groups and mappings share. Callers open the transactions; ids and times are made above. */
import type { Queryable } from '../storage/database.ts';

/**
 * Until the transaction ends nobody else writes to SCIM: what one of them computes from the groups holds when it commits.
 * Always the first lock that is taken.
 */
export async function lockOrganization(tx: Queryable, organizationId: string): Promise<void> {
  await tx.query('select 1 from organizations where id = $1 for no key update', [organizationId]);
}
