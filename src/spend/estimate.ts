/** Estimates the row of a request whose process died before settling it. */
import { nanoFromPrice } from '../base/money.ts';
import type { Usage } from '../formats/conversation/conversation.ts';
import { type Charge, chargeIn } from './budget.ts';
import { type Generation, unansweredRow } from './generation.ts';
import type { Attempt, Entry, Intent, Progress } from './record.ts';
import { encodeRow } from './row.ts';

/** Generated UTF-8 bytes per token, if the upstream reported no usage. */
const BYTES_PER_TOKEN = 4;

/** Estimated tokens of `bytes` of text. */
function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/**
 * With progress: the part of the answer that was seen. Without: the prompt only, because the upstream may have done
 * nothing.
 */
export function estimatedEntry(intent: Intent, attempt: Attempt, progress: Progress | undefined): Entry {
  const usage = usageSeen(attempt, progress);
  const cost = costSeen(attempt, usage, progress);
  const row: Generation = {
    ...unansweredRow(intent.accepted, attempt.model),
    endpointId: attempt.endpointId,
    providerName: attempt.providerName,
    isByok: attempt.isByok,
    error: { type: 'server', message: 'the gateway stopped before the answer was complete' },
    estimated: progress !== undefined,
    unconfirmed: progress === undefined,
    finishReason: 'error',
    usage,
    costNano: cost.creditNano,
    byokNano: cost.byokNano,
    upstreamCostNano: attempt.isByok ? cost.byokNano : null,
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

/** Reported usage is already priced; output seen after the report is added at the output price. */
function costSeen(attempt: Attempt, usage: Usage, progress: Progress | undefined): Charge {
  const { isByok, earlier, promptNano, outputPrice } = attempt;
  const unreported = BigInt(usage.output - Math.min(progress?.usage?.output ?? 0, usage.output));
  const output = nanoFromPrice(unreported * outputPrice);
  return added(progress?.charge ?? added(earlier, isByok, promptNano), isByok, output);
}

function added({ creditNano, byokNano }: Charge, isByok: boolean, nano: bigint): Charge {
  return isByok ? { creditNano, byokNano: byokNano + nano } : { creditNano: creditNano + nano, byokNano };
}
