/** Changes of the control plane, each with its audit entry and its announcement. */
import { type Announce, changeEverywhere } from '../storage/change-everywhere.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { type Author, type Change, recordChange } from './record.ts';

export interface AnnouncedChange extends Change {
  /** For processes that have the resource in memory. Absent: none can have. */
  announce?: readonly [topic: string, ...ids: string[]];
}

/** Writes the audit entry of a change and announces it. Call it once per change, after the change. */
export type Changed = (change: AnnouncedChange) => Promise<void>;

/**
 * Runs `work` in a transaction on behalf of an author. Resolves once every process applies the announced
 * changes (`changeEverywhere`).
 */
export function changeAs<T>(
  author: Author,
  parts: { database: Pick<Database, 'transaction'>; changes: Pick<Changes, 'announce'> },
  work: (tx: Queryable, changed: Changed, announce: Announce) => Promise<T>,
): Promise<T> {
  return changeEverywhere(parts, (tx, announce) => {
    const changed: Changed = async (change) => {
      await recordChange(tx, author, change);
      if (change.announce) await announce(...change.announce);
    };
    return work(tx, changed, announce);
  });
}
