/** The SQL of the callbacks of video jobs. */
import type { CallbackTable } from '../callbacks/index.ts';
import type { Queryable } from '../storage/database.ts';

export const VIDEO_CALLBACKS: CallbackTable = { name: 'video_callbacks', key: 'video_id' };

/** Stores the address of the gateway that the client used. */
export async function setBaseUrl(tx: Queryable, videoId: string, baseUrl: string): Promise<void> {
  await tx.query('update video_callbacks set base_url = $2 where video_id = $1', [videoId, baseUrl]);
}

/** Undefined while the video is being made. */
export async function endedCallback(
  db: Queryable,
  videoId: string,
): Promise<{ baseUrl: string; endedAt: Date } | undefined> {
  const [found] = await db.query<{ baseUrl: string; endedAt: Date }>(
    `select base_url as "baseUrl", ended_at as "endedAt" from video_callbacks
      where video_id = $1 and ended_at is not null`,
    [videoId],
  );
  return found;
}

export async function endCallback(tx: Queryable, videoId: string, endedAt: Date): Promise<void> {
  await tx.query('update video_callbacks set ended_at = $2 where video_id = $1', [videoId, endedAt]);
}

/** Ids of videos that ended before `before` and whose pending callback no job has tried since. Marks them as seen `at`. */
export async function forgottenCallbacks(db: Queryable, before: Date, at: Date): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `update video_callbacks set seen_at = $2
      where status = 'pending' and seen_at < $1 and ended_at < $1 returning video_id as id`,
    [before, at],
  );
  return rows.map(({ id }) => id);
}

/** Running jobs outlive their workspace, but send no events. */
export async function deleteCallbacksOf(tx: Queryable, workspaceId: string): Promise<void> {
  await tx.query('delete from video_callbacks using videos v where v.id = video_id and v.workspace_id = $1', [
    workspaceId,
  ]);
}
