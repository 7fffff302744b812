/** Every HTTP operation of the service, one line a folder. */
import { type AccessOperationParts, type Caller, keyOperations } from './access/index.ts';
import { catalogOperations } from './catalog/index.ts';
import { healthOperations, type Readiness } from './health.ts';
import type { Operation } from './http/operation.ts';
import { type InferenceLimits, type InferenceParts, inferenceOperations, leavesEndpoint } from './inference/index.ts';
import { type TranscriptOperationParts, transcriptOperations } from './transcripts/index.ts';

export interface OperationParts {
  access: AccessOperationParts;
  inference: InferenceParts;
  transcripts: TranscriptOperationParts;
  limits: InferenceLimits;
  readiness: Readiness;
}

/** Reads nothing of its parts until a request comes, so that the contract can be walked without starting anything. */
export function operations(parts: OperationParts): Operation<Caller>[] {
  return [
    ...healthOperations(parts.readiness),
    ...keyOperations(parts.access),
    ...catalogOperations<Caller>({
      catalog: () => parts.inference.catalog(),
      statistics: () => parts.inference.statistics,
      permits: (_caller, endpoint) => leavesEndpoint(parts.inference.policy(), endpoint),
    }),
    ...inferenceOperations(parts.inference, parts.limits),
    ...transcriptOperations(parts.transcripts),
  ];
}
