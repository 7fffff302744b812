/**
 * The provider without an account: two in-process models that reply with real bytes of the chat format, so that
 * everything downstream runs as with a real upstream.
 *
 * - `simulated/echo` replies with the text of the last user message.
 * - `simulated/script` follows the JSON in the last user message (`simulated/script.ts`): texts, tool calls, thinking,
 *   token counts, errors, delays, cuts, stalls.
 *
 * Both count a token per four bytes of UTF-8 and honour the output cap, `n` and `stream_options`. Their prices are made
 * up, to make costs and budgets visible: 1 USD per million prompt tokens (0.1 from a cache, 1.25 into it) and 2 USD per
 * million completion tokens.
 */
import { type Clock, systemClock } from '../../base/clock.ts';
import type { ModelSettings } from '../../base/config.ts';
import { parsePrice } from '../../base/money.ts';
import type { ProviderKind } from '../provider.ts';
import type { Transport } from '../send/index.ts';
import { SIMULATED_LIMITS, SimulatedCall } from '../simulated/call.ts';

/** Delays and timeouts of every call use the given clock. */
export function simulatedTransport(clock: Clock): Transport {
  const open = new Set<SimulatedCall>();
  return {
    send(request, receiver) {
      const call = new SimulatedCall(clock, request, {
        head: (status, headers) => receiver.head(status, headers),
        data: (chunk) => receiver.data(chunk),
        end() {
          open.delete(call);
          receiver.end();
        },
        failed(failure, sent) {
          open.delete(call);
          receiver.failed(failure, sent);
        },
      });
      open.add(call);
      return {
        pause: () => call.pause(),
        resume: () => call.resume(),
        abort() {
          open.delete(call);
          call.abort();
        },
      };
    },
    async close() {
      for (const call of open) call.abort();
      open.clear();
    },
  };
}

const PRICING = Object.freeze({
  prompt: parsePrice('0.000001'),
  completion: parsePrice('0.000002'),
  inputCacheRead: parsePrice('0.0000001'),
  inputCacheWrite: parsePrice('0.00000125'),
});

/** Nothing leaves the process and nothing is kept. */
const DATA_POLICY = Object.freeze({ zdr: true, trains: false, publishes: false, retainsForSafety: false });

function model(upstreamId: string, name: string): ModelSettings {
  const limits = SIMULATED_LIMITS[upstreamId]!;
  return {
    id: `simulated/${upstreamId}`,
    upstreamId,
    name,
    contextLength: limits.contextTokens,
    maxCompletionTokens: limits.outputTokens,
    pricing: PRICING,
    inputModalities: ['text'],
    outputModalities: ['text'],
    supportedParameters: ['max_tokens', 'max_completion_tokens', 'tools', 'tool_choice', 'reasoning'],
    dataPolicy: DATA_POLICY,
    region: null,
    quantization: null,
  };
}

export const simulated: ProviderKind = {
  id: 'simulated',
  name: 'Simulated',
  speaks: 'chat',
  headers: () => ({}),
  origin: 'unknown',
  dialect: { chat: { maxTokens: 'max_completion_tokens', reasoningReplay: 'reasoning_content' } },
  transport: simulatedTransport(systemClock),
  models: [model('echo', 'Simulated: Echo'), model('script', 'Simulated: Script')],
  standIn: true,
  standInSwitch: 'GATEHOUSE_SIMULATED',
};
