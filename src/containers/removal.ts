/** Removes containers that have expired, and those of deleted workspaces. */
import { ClaimTime } from '../base/claim-time.ts';
import type { Clock } from '../base/clock.ts';
import type { Blobs } from '../blobs/index.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Database, Queryable } from '../storage/database.ts';
import { RENEW_MS } from './claims.ts';
import * as store from './store.ts';

const EXPIRE_MS = 60_000;
const REMOVED_AT_ONCE = 100;

interface RemovalParts {
  database: Database;
  blobs: Pick<Blobs, 'drop'>;
  clock: Clock;
}

/** Removes containers that have expired. */
export function expireContainersJob({ database, blobs, clock }: RemovalParts): JobKind {
  const time = new ClaimTime(clock, RENEW_MS);
  const removeExpired = () =>
    database.transaction(async (tx) => {
      const expired = await store.deleteExpired(tx, new Date(time.now()), REMOVED_AT_ONCE);
      await dropBlobs(blobs, tx, expired);
      return expired.length;
    });
  return {
    name: 'containers.expire',
    runs: 'one',
    retries: 0,
    everyMs: EXPIRE_MS,
    atStart: true,
    async run({ signal }) {
      while ((await removeExpired()) === REMOVED_AT_ONCE) signal.throwIfAborted();
    },
  };
}

/** Removes the containers of a workspace that is deleted. */
export function endContainers(blobs: Pick<Blobs, 'drop'>) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    await dropBlobs(blobs, tx, await store.deleteContainersOf(tx, workspaceId));
  };
}

/** @param blobIds null: of a container without stored files */
export async function dropBlobs(
  blobs: Pick<Blobs, 'drop'>,
  tx: Queryable,
  blobIds: readonly (string | null)[],
): Promise<void> {
  for (const id of blobIds) if (id !== null) await blobs.drop(tx, id);
}
