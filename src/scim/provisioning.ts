/** Writes users and groups: one writer at a time, and the response waits until every process knows of the change. */
import { type Caller, MEMBERS_TOPIC } from '../access/index.ts';
import { type Author, authorOf } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import type { Exchange } from '../http/operation.ts';
import { changeEverywhere } from '../storage/change-everywhere.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { lockOrganization } from './store.ts';
import type { Source } from './users/store.ts';

export interface ProvisioningParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  /** Runs sync jobs that the transaction inserted, after it commits. */
  runSyncJobs(tx: Queryable): Promise<void>;
}

/** A transaction that holds the organization's lock. */
export interface Provisioning {
  tx: Queryable;
  organizationId: string;
  source: Source;
  /** Author of the audit entries. */
  author: Author;
  nowMs: number;
  /** Ids of users who joined or left in this transaction. */
  moved: Set<string>;
}

/** Runs `work` in one transaction; resolves once every process knows who joined or left. */
export function provision<T>(
  parts: Omit<ProvisioningParts, 'runSyncJobs'>,
  source: Source,
  author: Author,
  work: (provisioning: Provisioning) => Promise<T>,
): Promise<T> {
  const { organizationId } = author;
  return changeEverywhere(parts, async (tx, announce) => {
    await lockOrganization(tx, organizationId);
    const moved = new Set<string>();
    const result = await work({ tx, organizationId, source, author, nowMs: parts.clock.now(), moved });
    await announce(MEMBERS_TOPIC, ...moved);
    return result;
  });
}

/** The same for a request of an identity provider. */
export function provisionPushed<T>(
  parts: ProvisioningParts,
  exchange: Exchange<Caller>,
  work: (provisioning: Provisioning) => Promise<T>,
): Promise<T> {
  return provision(parts, 'push', authorOf(exchange), work);
}
