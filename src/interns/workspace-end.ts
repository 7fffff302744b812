/** Deletes the interns of a deleted workspace, and the archives of earlier ones. Their sandboxes are destroyed later. */
import type { Blobs } from '../blobs/index.ts';
import type { Changes, Queryable } from '../storage/database.ts';
import { INTERNS_TOPIC } from './change-intern.ts';
import { deleteArchivesIn, deleteInternsIn } from './work/archives.sql.ts';

/** For `ended` of workspaces, before that of vaults. */
export function endInterns(changes: Pick<Changes, 'announce'>, blobs: Pick<Blobs, 'drop'>) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    await changes.announce(tx, INTERNS_TOPIC, ...(await deleteInternsIn(tx, workspaceId)));
    for (const blobId of await deleteArchivesIn(tx, workspaceId)) await blobs.drop(tx, blobId);
  };
}
