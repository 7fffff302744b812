/** Waits for the end of a batch and shows its progress. */
import { type Clock, sleep } from '../../base/clock.ts';
import { ConnectionLost, type GatewayApi, type ShownBatch } from './gateway-api.ts';
import { BatchProblem, EXIT } from './problem.ts';
import type { Progress } from './progress.ts';

const FIRST_MS = 500;
const LONGEST_MS = 10_000;
const FINAL = ['completed', 'failed', 'expired', 'cancelled'];
export const STATUSES: readonly string[] = ['validating', 'in_progress', 'finalizing', 'cancelling', ...FINAL];

export interface WatchParts {
  api: GatewayApi;
  clock: Clock;
  progress: Progress;
  signal: AbortSignal;
}

export function batchOf({ api }: Pick<WatchParts, 'api'>, id: string): Promise<ShownBatch> {
  return api.json<ShownBatch>({ method: 'GET', path: `/batches/${encodeURIComponent(id)}?results=false` });
}

export function isFinal({ status }: ShownBatch): boolean {
  return FINAL.includes(status);
}

/** Asks again while the gateway cannot be reached. @throws BatchProblem, also after Ctrl-C */
export async function watchBatch(parts: WatchParts, id: string): Promise<ShownBatch> {
  const { clock, progress, signal } = parts;
  const interrupted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  let isLost = false;
  for (let pauseMs = FIRST_MS; ; pauseMs = Math.min(LONGEST_MS, pauseMs * 1.2)) {
    try {
      const batch = await batchOf(parts, id);
      if (isLost) progress.say('the gateway can be reached again');
      isLost = false;
      const { completed, failed, total } = batch.request_counts;
      const done = completed + failed;
      progress.show(batch.status, done, total, `${done}/${total}${failed > 0 ? `, ${failed} failed` : ''}`);
      if (isFinal(batch)) {
        progress.end();
        return batch;
      }
    } catch (error) {
      if (signal.aborted) throw leftRunning(progress, id);
      if (!(error instanceof ConnectionLost)) throw error;
      if (!isLost) progress.say(`${error.message}; trying again`);
      isLost = true;
    }
    await Promise.race([sleep(clock, pauseMs), interrupted]);
    if (signal.aborted) throw leftRunning(progress, id);
  }
}

function leftRunning(progress: Progress, id: string): BatchProblem {
  progress.end();
  return new BatchProblem(
    `the batch keeps running; watch it with: gatehouse batch status ${id} --watch\ncancel it with: gatehouse batch cancel ${id}`,
    EXIT.interrupted,
  );
}
