/** Removes files that have expired, and resumable uploads whose time is over. */
import { gatewayAuthor, recordChange } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import type { Blobs } from '../blobs/index.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Database } from '../storage/database.ts';
import { lockExpiredUploads } from './google/store.ts';
import { removeUploads } from './google/uploads.ts';
import { fileReply, resourceOf } from './shape.ts';
import * as store from './store.ts';

const EXPIRE_MS = 60_000;
const REMOVED_AT_ONCE = 100;

interface ExpiryParts {
  database: Database;
  blobs: Pick<Blobs, 'drop'>;
  clock: Clock;
  /** The name of `svc` on the wire. */
  namespace: string;
}

export function expireFilesJob(parts: ExpiryParts): JobKind {
  return {
    name: 'files.expire',
    runs: 'one',
    retries: 0,
    everyMs: EXPIRE_MS,
    atStart: true,
    async run({ signal }) {
      while ((await removeExpired(parts)) === REMOVED_AT_ONCE) signal.throwIfAborted();
      while ((await removeExpiredUploads(parts)) === REMOVED_AT_ONCE) signal.throwIfAborted();
    },
  };
}

/** Returns how many files were removed. */
function removeExpired({ database, blobs, clock, namespace }: ExpiryParts): Promise<number> {
  return database.transaction(async (tx) => {
    const expired = await store.lockExpiredFiles(tx, new Date(clock.now()), REMOVED_AT_ONCE);
    for (const file of expired) {
      await store.deleteFile(tx, file.id);
      await blobs.drop(tx, file.blobId);
      const change = {
        action: 'file.expired',
        ...resourceOf(file),
        before: fileReply(file, 'svc', namespace),
      } as const;
      await recordChange(tx, gatewayAuthor(file.organizationId, clock.now()), change);
    }
    return expired.length;
  });
}

/** Returns how many uploads were removed. */
function removeExpiredUploads({ database, blobs, clock }: ExpiryParts): Promise<number> {
  return database.transaction(async (tx) => {
    const ids = await lockExpiredUploads(tx, new Date(clock.now()), REMOVED_AT_ONCE);
    if (ids.length > 0) await removeUploads(tx, ids, blobs);
    return ids.length;
  });
}
