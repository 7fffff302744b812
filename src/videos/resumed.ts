/** What is left of the request of a job whose process stopped: enough to poll its provider and to enter its row. */
import { callerWithoutRules } from '../access/index.ts';
import { readDocument } from '../base/json.ts';
import { video } from '../formats/video/index.ts';
import { credentialOf, type InferenceParts, notConfigured, type ResumedJob } from '../inference/index.ts';
import type { Generation } from '../spend/index.ts';
import type { VideoJob } from './store.ts';

/** @throws GatewayError 503 while the endpoint or its credential is not configured */
export function resumedJob(job: VideoJob, estimate: Generation, inference: InferenceParts): ResumedJob {
  const { organizationId, workspaceId } = job;
  const caller = callerWithoutRules({ keyId: estimate.keyId, keyHash: '', organizationId, workspaceId });
  const endpoint = inference
    .catalog()
    .find(estimate.model)
    ?.endpoints.find(({ id }) => id === job.endpointId);
  if (endpoint?.provider.kind.video === undefined) throw notConfigured(`the endpoint ${job.endpointId}`);
  const account = { credential: job.credential ?? '', byokId: job.byokId };
  // The prompt is not kept, and nothing that follows reads it.
  const document = readDocument(
    Buffer.from(JSON.stringify({ model: job.model, prompt: '', ...(job.seconds && { duration: job.seconds }) })),
  );
  const { requestId, dataRegion: region, userAgent, origin, title, sessionId, externalUser, metadata } = estimate;
  return {
    id: job.upstreamId!,
    estimate,
    candidate: { endpoint, rank: 0, ...credentialOf(account, endpoint, caller, inference.byokCredentials) },
    request: {
      id: job.generationId,
      format: video as ResumedJob['request']['format'],
      document,
      facts: {
        ...video.facts(document),
        ...(externalUser !== null && { user: externalUser }),
        ...(metadata !== null && { metadata }),
      },
      caller,
      startedAt: estimate.createdAt,
      about: { requestId, region, userAgent, origin, title, sessionId, metadata: false, headers: {} },
      plugins: undefined,
    },
  };
}
