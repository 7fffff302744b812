/** Simulated videos: jobs that end at the second poll. The id of a job contains its request, so nothing is stored. */

const DEFAULT_SECONDS = '4';

/** The state of a job, in OpenAI's format. */
export function videoJob(url: string, form: Buffer): Record<string, unknown> {
  const [, id, remix] = /\/videos\/([^/]+)(\/remix)?$/.exec(url) ?? [];
  const text = form.toString('latin1');
  const seconds = id === undefined ? (/name="seconds"\r\n\r\n(\d+)/.exec(text)?.[1] ?? DEFAULT_SECONDS) : secondsOf(id);
  const isNew = id === undefined || remix !== undefined;
  const shown = isNew ? `video_${seconds}` : id;
  return { id: shown, object: 'video', seconds, status: isNew ? 'queued' : 'completed', progress: 0 };
}

/** An MP4 as far as its first box: a kilobyte for each second. */
export function videoBytes(url: string): Buffer {
  const id = /\/videos\/([^/]+)\/content$/.exec(url)?.[1] ?? '';
  const bytes = Buffer.alloc(1024 * Math.min(Number(secondsOf(id)), 600));
  bytes.writeUInt32BE(16, 0);
  bytes.write('ftypisom', 4, 'latin1');
  return bytes;
}

function secondsOf(id: string): string {
  return /^video_(\d{1,4})$/.exec(id)?.[1] ?? DEFAULT_SECONDS;
}
