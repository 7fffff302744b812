/** Removes the copies at vendors whose files do not exist any more. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { JobKind } from '../../jobs/index.ts';
import { byokTarget, type Provider, type Transport, type UpstreamTarget } from '../../providers/index.ts';
import type { Database } from '../../storage/database.ts';
import { accountOf, removeAt } from './copies.ts';
import * as store from './store.ts';
import { STORES } from './stores.ts';

const REMOVE_MS = 60_000;
const REMOVED_AT_ONCE = 50;
const RETRY_MS = 3_600_000;
/** Then the copy is left to the vendor. */
const MOST_ATTEMPTS = 48;

export interface CopyRemovalParts {
  database: Database;
  clock: Clock;
  log: Log;
  transport: Transport;
  /** As currently configured. */
  providers(): readonly Provider[];
  /** A decrypted BYOK credential; undefined if there is none with this id here. */
  byokValue(id: string): string | undefined;
}

export function removeCopiesJob(parts: CopyRemovalParts): JobKind {
  return {
    name: 'files.copies',
    runs: 'one',
    retries: 0,
    everyMs: REMOVE_MS,
    atStart: true,
    async run({ signal }) {
      while ((await removeSome(parts)) === REMOVED_AT_ONCE) signal.throwIfAborted();
    },
  };
}

/** Returns how many were looked at. */
async function removeSome(parts: CopyRemovalParts): Promise<number> {
  const { database, clock } = parts;
  const now = clock.now();
  const copies = await store.removableCopies(database, new Date(now), REMOVED_AT_ONCE);
  for (const copy of copies) {
    const expired = copy.expiresAt !== null && copy.expiresAt.getTime() <= now;
    if (expired || (await isRemoved(copy, parts))) await store.deleteCopies(database, [copy.id]);
    else await store.postponeRemoval(database, copy.id, new Date(now + RETRY_MS));
  }
  return copies.length;
}

/** True also if it never can be. */
async function isRemoved(copy: store.StoredCopy, parts: CopyRemovalParts): Promise<boolean> {
  const { log } = parts;
  const about = { provider: copy.providerId, copy: copy.vendorId };
  const target = targetOf(copy, parts);
  const vendorStore = target && STORES.get(target.provider.kind.id);
  if (target === undefined || vendorStore === undefined) {
    log.warn('a copy of a file stays at a provider, since its credential is gone', about);
    return true;
  }
  try {
    await removeAt({ target, store: vendorStore }, copy.vendorId!, parts);
    return true;
  } catch (error) {
    if (copy.removalAttempts + 1 < MOST_ATTEMPTS) return false;
    log.error('a copy of a file stays at a provider, since it cannot be removed', { ...about, error });
    return true;
  }
}

/** With the credential that uploaded the copy. */
function targetOf(
  { providerId, byokId, account }: store.StoredCopy,
  parts: CopyRemovalParts,
): UpstreamTarget | undefined {
  const provider = parts.providers().find(({ id }) => id === providerId);
  if (provider === undefined) return undefined;
  const value = byokId === null ? undefined : parts.byokValue(byokId);
  const targets: UpstreamTarget[] =
    byokId === null
      ? provider.credentials.map((credential) => ({ provider, credential }))
      : value === undefined
        ? []
        : [byokTarget(provider, value)];
  return targets.find((target) => accountOf(target).equals(account));
}
