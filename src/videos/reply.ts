/** A video job as clients see it. */
import { unixSeconds } from '../base/timestamp.ts';
import type { VideoJob } from './store.ts';

/** @param baseUrl of the gateway (`publicUrl`) */
export function videoReply(job: VideoJob, baseUrl: string, isExpired: boolean): Record<string, unknown> {
  const status = job.status === 'completed' && isExpired ? 'expired' : job.status;
  const url = `${baseUrl}/api/v1/videos/${job.id}`;
  return {
    ...{ id: job.id, object: 'video', status, polling_url: url, generation_id: job.generationId, model: job.model },
    created_at: unixSeconds(job.createdAt),
    expires_at: unixSeconds(job.expiresAt),
    progress: job.status === 'completed' ? 100 : 0,
    ...(job.error !== null && { error: job.error }),
    ...(status === 'completed' && { unsigned_urls: [`${url}/content`] }),
    ...(status !== 'in_progress' && { usage: { cost: job.cost, is_byok: job.isByok } }),
  };
}
