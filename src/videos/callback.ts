/** The event of a video job, and the headers that receivers written for the public service verify. */
import { createHmac } from 'node:crypto';
import type { Namespace } from '../base/namespace.ts';
import type { CallbackEvent, CallbackSubjects } from '../callbacks/index.ts';
import type { Database } from '../storage/database.ts';
import { endedCallback, forgottenCallbacks, VIDEO_CALLBACKS } from './callback.sql.ts';
import { videoReply } from './reply.ts';
import { findJob } from './store.ts';

export function videoSubjects(database: Database, { headerPrefix }: Namespace): CallbackSubjects {
  return {
    noun: 'video',
    job: 'videos.callback',
    table: VIDEO_CALLBACKS,
    eventOf: (id) => eventOf(id, database),
    // openrouter.ai/docs, "Get Video Results with Webhooks"
    extraHeaders({ id, body }, secret, now) {
      const time = Math.floor(now / 1000);
      const signature = createHmac('sha256', secret).update(`${time},${body}`).digest('hex');
      return {
        [`${headerPrefix}Signature`]: `t=${time},v1=${signature}`,
        [`${headerPrefix}Idempotency-Key`]: id,
      };
    },
    forgotten: (before, at) => forgottenCallbacks(database, before, at),
  };
}

async function eventOf(videoId: string, database: Database): Promise<CallbackEvent | undefined> {
  const ended = await endedCallback(database, videoId);
  const job = await findJob(database, videoId);
  if (ended === undefined || job === undefined) return undefined;
  const { baseUrl, endedAt } = ended;
  const id = videoId.replace('vid_', 'evt_');
  const type = `video.generation.${job.status}`;
  const event = { id, object: 'event', type, created_at: endedAt.toISOString(), data: videoReply(job, baseUrl, false) };
  return { id, type, subject: videoId, workspaceId: job.workspaceId, endedAt, body: JSON.stringify(event) };
}
