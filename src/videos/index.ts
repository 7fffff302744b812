/**
 * Video jobs: `POST /videos`, their states and their content, which is kept for a week. A job is a request of the pipeline
 * (`inference/`) whose answer goes to the blob store instead of a client, and which another process continues if its own stops.
 *
 * Not here: the format and the services (`formats/video/`).
 */
import type { Blobs } from '../blobs/index.ts';
import type { Queryable } from '../storage/database.ts';
import { deleteCallbacksOf } from './callback.sql.ts';
import { deleteVideosOf } from './store.ts';

export { videoMigrations } from './migrations/index.ts';
export { createVideos, type VideoParts, videoOperations } from './operations.ts';

/** For `ended` of workspaces. */
export function endVideos(blobs: Blobs) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    await deleteCallbacksOf(tx, workspaceId);
    for (const id of await deleteVideosOf(tx, workspaceId)) await blobs.drop(tx, id);
  };
}
