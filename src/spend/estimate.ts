/** Estimates the row of a request whose process died before settling it. */
import { nanoFromPrice } from '../base/money.ts';
import type { Usage } from '../formats/conversation/conversation.ts';
import { addUsage } from '../formats/conversation/usage.ts';
import { type Charge, chargeIn } from './budget.ts';
import { type Accepted, type Generation, unansweredRow } from './generation.ts';
import type { Attempt, Entry, Intent, Progress } from './record.ts';
import { encodeRow } from './row.ts';

/** Generated UTF-8 bytes per token, if the upstream reported no usage. */
const BYTES_PER_TOKEN = 4;
const NO_USAGE: Usage = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0 };

/** Estimated tokens of `bytes` of text. */
function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** The entry of `estimatedRow`, with what it takes from the leases. */
export function estimatedEntry(intent: Intent, attempt: Attempt, progress: Progress | undefined): Entry {
  const row = estimatedRow(intent.accepted, attempt, progress);
  const cost = { creditNano: row.costNano, byokNano: row.byokNano };
  const taken = intent.held.map((held) => {
    const nano = chargeIn(held, cost);
    return { windowId: held.windowId, nano, forcedNano: nano > held.nano ? nano - held.nano : 0n };
  });
  return { id: row.id, row: encodeRow(row), taken };
}

/**
 * With progress: the part of the answer that was seen. Without: the prompt only, because the upstream may have done
 * nothing.
 */
export function estimatedRow(accepted: Accepted, attempt: Attempt, progress?: Progress): Generation {
  const usage = usageSeen(attempt, progress);
  const cost = costSeen(attempt, progress);
  return {
    ...unansweredRow(accepted, attempt.model),
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
}

/** Reported usage, or else that of earlier turns and the estimated prompt of this attempt; plus unreported output. */
function usageSeen(attempt: Attempt, progress: Progress | undefined): Usage {
  const prompt = { ...NO_USAGE, input: attempt.promptTokens };
  const known = progress?.usage ?? addUsage(attempt.earlierUsage ?? NO_USAGE, prompt);
  return { ...known, output: known.output + unreportedOutput(progress) };
}

/** Reported usage is already priced; output seen after the report is added at the output price. */
function costSeen({ isByok, earlier, promptNano, outputPrice }: Attempt, progress: Progress | undefined): Charge {
  const output = nanoFromPrice(BigInt(unreportedOutput(progress)) * outputPrice);
  return added(progress?.charge ?? added(earlier, isByok, promptNano), isByok, output);
}

/** Tokens of output that was seen, beyond those that were reported. */
function unreportedOutput(progress: Progress | undefined): number {
  return Math.max(tokensOfBytes(progress?.outputBytes ?? 0) - (progress?.usage?.output ?? 0), 0);
}

function added({ creditNano, byokNano }: Charge, isByok: boolean, nano: bigint): Charge {
  return isByok ? { creditNano, byokNano: byokNano + nano } : { creditNano: creditNano + nano, byokNano };
}
