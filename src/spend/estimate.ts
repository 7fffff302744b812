/** The row of a request whose process died before it could be settled (design promise 1). */
import { nanoFromPrice } from '../base/money.ts';
import type { Usage } from '../formats/conversation/conversation.ts';
import { type Charge, chargeIn } from './budget.ts';
import type { Generation } from './generation.ts';
import type { Attempt } from './index.ts';
import { type Entry, encodeRow, type Intent, type Progress } from './record.ts';

/** UTF-8 bytes of generated text that are taken for one token when the upstream reported none. */
const BYTES_PER_TOKEN = 4;

/** Tokens that so many bytes of text are taken for. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** With progress: what was seen of the answer. Without: its prompt, as nobody knows whether the upstream worked on it. */
export function estimatedEntry(intent: Intent, attempt: Attempt, progress: Progress | undefined): Entry {
  const usage = usageSeen(attempt, progress);
  const cost = costSeen(attempt, usage, progress);
  const row: Generation = {
    ...intent.accepted,
    model: attempt.model,
    endpointId: attempt.endpointId,
    providerName: attempt.providerName,
    upstreamId: null,
    isByok: attempt.isByok,
    status: null,
    error: { type: 'server', message: 'the gateway was stopped before the answer was complete' },
    cancelled: false,
    estimated: progress !== undefined,
    unconfirmed: progress === undefined,
    finishReason: 'error',
    nativeFinishReason: null,
    usage,
    media: {},
    costNano: cost.creditNano,
    byokNano: cost.byokNano,
    upstreamCostNano: attempt.isByok ? cost.byokNano : null,
    cacheDiscountNano: null,
    latencyMs: null,
    generationMs: null,
    moderationMs: null,
    providerResponses: [],
    serviceTier: null,
    router: null,
    presetId: null,
    webSearchEngine: null,
    responseCacheSourceId: null,
  };
  const taken = intent.held.map((held) => {
    const nano = chargeIn(held, cost);
    return { windowId: held.windowId, nano, forcedNano: nano > held.nano ? nano - held.nano : 0n };
  });
  return { id: row.id, row: encodeRow(row), taken };
}

function usageSeen(attempt: Attempt, progress: Progress | undefined): Usage {
  const seen = progress?.usage ?? {
    input: attempt.promptTokens,
    cacheRead: 0,
    cacheWrite5m: 0,
    cacheWrite1h: 0,
    output: 0,
    reasoning: 0,
  };
  return { ...seen, output: Math.max(seen.output, tokensOfBytes(progress?.outputBytes ?? 0)) };
}

/** Reported usage is priced already; what was written after that report is added at the output's price. */
function costSeen(attempt: Attempt, usage: Usage, progress: Progress | undefined): Charge {
  const { isByok, earlier, promptNano, outputPrice } = attempt;
  const unreported = BigInt(usage.output - Math.min(progress?.usage?.output ?? 0, usage.output));
  const output = nanoFromPrice(unreported * outputPrice);
  return added(progress?.charge ?? added(earlier, isByok, promptNano), isByok, output);
}

function added({ creditNano, byokNano }: Charge, isByok: boolean, nano: bigint): Charge {
  return isByok ? { creditNano, byokNano: byokNano + nano } : { creditNano: creditNano + nano, byokNano };
}
