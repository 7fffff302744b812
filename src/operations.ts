/** Every HTTP operation, one line per folder. */

import { type AccessOperationParts, type Caller, keyOperations } from './access/index.ts';
import { type AnalyticsParts, analyticsOperations, datasetOperations } from './analytics/index.ts';
import { type AuditParts, auditOperations } from './audit/index.ts';
import { type BatchParts, batchOperations } from './batches/index.ts';
import { type ByokParts, byokOperations } from './byok/index.ts';
import { catalogOperations, type ListedRouter } from './catalog/index.ts';
import { type ConsoleParts, consoleOperations } from './console/index.ts';
import { type ContainerOperationParts, containerOperations } from './containers/index.ts';
import { type DestinationParts, destinationOperations } from './destinations/index.ts';
import { type FileParts, fileOperations } from './files/index.ts';
import type { ServedFormat } from './formats/conversation/format.ts';
import { type GuardrailParts, guardrailOperations, policyOf } from './guardrails/index.ts';
import type { Operation } from './http/operation.ts';
import {
  budgetsOf,
  type InferenceLimits,
  type InferenceParts,
  inferenceOperations,
  leavesEndpoint,
} from './inference/index.ts';
import { type ChatOperationParts, chatOperations, internOperations } from './interns/index.ts';
import { type MemoryOperationParts, memoryOperations } from './memories/index.ts';
import { type ObservabilityOperationParts, observabilityOperations } from './observability/index.ts';
import { type PageParts, pageOperations } from './pages/index.ts';
import { type PresetParts, presetOperations } from './presets/index.ts';
import {
  answerWithState,
  compactionOperations,
  conversationOperations,
  type ResponseOperationParts,
  responseOperations,
} from './responses/index.ts';
import { type ScimParts, scimOperations } from './scim/index.ts';
import { healthOperations, type Readiness } from './server/health.ts';
import { type SystemParts, systemOperations } from './server/system.ts';
import { type SignInParts, signInOperations } from './sign-in/index.ts';
import { spendOperations } from './spend/index.ts';
import { type TranscriptOperationParts, transcriptOperations } from './transcripts/index.ts';
import { type VaultParts, vaultOperations } from './vault/index.ts';
import { type VectorStoreParts, vectorStoreOperations } from './vector-stores/index.ts';
import { type VideoParts, videoOperations } from './videos/index.ts';
import { type WorkspaceOperationParts, workspaceOperations } from './workspaces/index.ts';

export interface OperationParts {
  access: AccessOperationParts;
  workspaces: WorkspaceOperationParts;
  guardrails: GuardrailParts;
  byok: ByokParts;
  memories: MemoryOperationParts;
  presets: PresetParts;
  files: FileParts;
  containers: ContainerOperationParts;
  vectorStores: VectorStoreParts;
  batches: BatchParts;
  vault: VaultParts;
  interns: ChatOperationParts;
  scim: ScimParts;
  signIn: SignInParts;
  inference: InferenceParts;
  responses: ResponseOperationParts;
  videos: VideoParts;
  /** Router models, as shown to clients. */
  routers(): readonly ListedRouter[];
  transcripts: TranscriptOperationParts;
  limits: InferenceLimits;
  observability: ObservabilityOperationParts;
  destinations: DestinationParts;
  audit: AuditParts;
  analytics: AnalyticsParts;
  pages: PageParts;
  console: ConsoleParts;
  readiness: Readiness;
  system: SystemParts;
}

/** Parts of the API whose unknown paths have a plain 404: nothing may tell callers outside of the programme what there is. */
export const UNSUPPORTED = ['interns', 'vault'];

/**
 * Does not use `parts` before the first request, so that the contract can be read without starting anything.
 * @param formats those that conversations can be held in; default: all
 */
export function operations(parts: OperationParts, formats?: readonly ServedFormat[]): Operation<Caller>[] {
  const balanceNano = async () => {
    await parts.inference.refresh?.();
    return parts.inference.accountBalanceNano();
  };
  return [
    ...healthOperations(parts.readiness),
    ...pageOperations<Caller>(parts.pages),
    ...consoleOperations(parts.console),
    ...keyOperations(parts.access),
    ...workspaceOperations(parts.workspaces),
    ...guardrailOperations(parts.guardrails),
    ...byokOperations(parts.byok),
    ...memoryOperations(parts.memories),
    ...presetOperations(parts.presets),
    ...fileOperations(parts.files),
    ...containerOperations(parts.containers),
    ...vectorStoreOperations(parts.vectorStores),
    ...vaultOperations(parts.vault),
    ...internOperations(parts.interns),
    ...chatOperations(parts.interns),
    ...scimOperations(parts.scim),
    ...signInOperations(parts.signIn),
    ...spendOperations<Caller>({
      spend: () => parts.inference.spend,
      budgetsOf: async (caller) => budgetsOf(caller, await balanceNano()),
      balanceNano,
    }),
    ...catalogOperations<Caller>({
      catalog: () => parts.inference.catalog(),
      statistics: () => parts.inference.statistics,
      permits: (caller, endpoint, zdr) => {
        const guarded = { guardrails: policyOf(caller), catalog: parts.inference.catalog() };
        return leavesEndpoint(parts.inference.accountPolicy(), endpoint, guarded, zdr);
      },
      routers: () => parts.routers(),
      popularity: (caller, days) => parts.inference.spend.tokensByModel(caller.organizationId, days),
    }),
    ...inferenceOperations(parts.inference, parts.limits, formats, {
      responses: (exchange) => answerWithState(exchange, parts.responses),
    }),
    ...responseOperations(parts.responses),
    ...compactionOperations(parts.responses, parts.limits),
    ...conversationOperations(parts.responses, parts.limits),
    ...videoOperations(parts.videos, parts.limits),
    ...batchOperations(parts.batches),
    ...transcriptOperations(parts.transcripts),
    ...observabilityOperations(parts.observability),
    ...destinationOperations(parts.destinations),
    ...auditOperations<Caller>(parts.audit),
    ...analyticsOperations(parts.analytics),
    ...datasetOperations(parts.analytics),
    ...systemOperations(parts.system),
  ];
}
