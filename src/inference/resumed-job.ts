/**
 * A job that an upstream has accepted and that another process began to poll: its result is read, metered and exported as if
 * this process had asked for it. The row is not entered here: the hold of the request (`spend/holds/`) pays for it.
 */
import { acceptedPartOf, type Generation } from '../spend/index.ts';
import { exportGeneration } from './answer/export-generation.ts';
import type { Sink } from './answer/sink.ts';
import { SettledOnly, standalone } from './batched/settle.ts';
import { Call } from './call.ts';
import { RequestContext } from './context.ts';
import { DirectTask } from './direct-task.ts';
import type { InferenceParts } from './parts.ts';
import type { DirectRequest } from './request.ts';
import type { Candidate } from './routing/index.ts';
import { serve } from './serve.ts';

export interface ResumedJob {
  /** The facts of the request that are needed to read the result. */
  request: DirectRequest;
  /** The endpoint and the credential that the job was sent with. */
  candidate: Candidate;
  /** The upstream's id of the job. */
  id: string;
  /** `UpstreamJob.estimate` */
  estimate: Generation;
}

/**
 * Writes the result to the sink. Resolves with the row; undefined if the process stopped first. Never rejects because
 * of the upstream: every error is sent to the sink.
 */
export async function resumeJob(job: ResumedJob, sink: Sink, parts: InferenceParts): Promise<Generation | undefined> {
  const { request, candidate, id, estimate } = job;
  const context = new RequestContext(request, sink, parts.clock);
  const settled = new SettledOnly();
  const alone = standalone(parts, settled);
  exportGeneration(context, alone);
  const task = new DirectTask(context, alone, id);
  const route = { candidates: [candidate], requested: candidate.endpoint.modelId, strategy: 'direct' as const };
  const call = new Call(context, task, route, alone, serve);
  const slot = parts.inFlight.add(call);
  try {
    await call.run();
  } finally {
    parts.inFlight.delete(call, slot);
  }
  if (settled.row === undefined) return undefined;
  return { ...settled.row, ...acceptedPartOf(estimate), generationMs: parts.clock.now() - estimate.createdAt };
}
