/** Records for tests of spend. */
import type { Usage } from '../../formats/conversation/conversation.ts';
import {
  type Accepted,
  type Attempt,
  type Budget,
  type Generation,
  type OpenGeneration,
  type Reservation,
  type Spend,
  unansweredRow,
} from '../../spend/index.ts';

export const NOON = Date.UTC(2026, 2, 18, 12);

export function sampleAccepted(id: string, change: Partial<Accepted> = {}): Accepted {
  return {
    id,
    createdAt: NOON,
    requestId: 'req-1',
    keyId: 'key-1',
    workspaceId: 'workspace-1',
    organizationId: 'org-1',
    apiType: 'completions',
    streamed: false,
    dataRegion: 'global',
    userAgent: 'client/1.0',
    origin: 'https://app.example',
    title: 'App',
    sessionId: null,
    externalUser: null,
    presetId: null,
    metadata: null,
    ...change,
  };
}

/** Prompt of 100 tokens for 500 nano-dollars, output at 20 nano-dollars a token. */
export function sampleAttempt(change: Partial<Attempt> = {}): Attempt {
  return {
    model: 'acme/large',
    endpointId: 'acme/large@acme',
    providerName: 'Acme',
    isByok: false,
    promptTokens: 100,
    promptNano: 500n,
    outputPrice: 20_000_000_000n,
    earlier: { creditNano: 0n, byokNano: 0n },
    ...change,
  };
}

export const SAMPLE_USAGE: Usage = {
  input: 100,
  cacheRead: 7,
  cacheWrite5m: 3,
  cacheWrite1h: 2,
  output: 50,
  reasoning: 20,
};

export function sampleGeneration(accepted: Accepted, change: Partial<Generation> = {}): Generation {
  return {
    ...unansweredRow(accepted, 'acme/large'),
    endpointId: 'acme/large@acme',
    providerName: 'Acme',
    upstreamId: 'chatcmpl-1',
    status: 200,
    finishReason: 'stop',
    nativeFinishReason: 'end_turn',
    usage: SAMPLE_USAGE,
    costNano: 1_500n,
    latencyMs: 12.5,
    generationMs: 80,
    providerResponses: [{ endpoint_id: 'acme/large@acme', provider_name: 'Acme', status: 200, latency: 12 }],
    ...change,
  };
}

export function sampleBudget(limitNano: bigint, change: Partial<Budget> = {}): Budget {
  return { scope: 'key', scopeId: 'key-1', interval: 'daily', limitNano, includeByok: false, ...change };
}

/** A request that is still wanted when its turn ends. */
export async function begin(
  spend: Spend,
  accepted: Accepted,
  reservation: Reservation,
  attempt: Attempt = sampleAttempt(),
): Promise<OpenGeneration> {
  const open = await spend.begin(accepted, attempt, reservation, () => true);
  if (open === undefined) throw new Error(`${accepted.id} was not begun though it was wanted`);
  return open;
}

/** Resolves once the row is in the journal. */
export function settle(open: OpenGeneration, row: Generation): Promise<void> {
  return new Promise((resolve) => open.settle(row, resolve));
}

/** A request from its intent to its row. */
export async function enter(
  spend: Spend,
  accepted: Accepted,
  reservation: Reservation,
  row: Generation = sampleGeneration(accepted),
): Promise<void> {
  await settle(await begin(spend, accepted, reservation), row);
}
