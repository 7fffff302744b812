/**
 * The provider without an account: in-process models that reply with real bytes of OpenAI's formats, so that everything
 * downstream runs as with a real upstream.
 *
 * - `simulated/echo` replies with the text of the last user message; with `response_format: json_schema`, with JSON that the
 *   schema allows.
 * - `simulated/script` follows the JSON in the last user message (`simulated/script.ts`): texts, tool calls, thinking,
 *   token counts, errors, delays, cuts, stalls.
 * - `simulated/speech` speaks: 20 ms of a tone for each byte of the text (`simulated/speech.ts`).
 * - `simulated/transcription` writes down what `simulated/speech` has spoken.
 * - `simulated/video` makes an MP4 header without frames, as a job.
 *
 * The first two count a token per four bytes of UTF-8 and honour the output cap, `n` and `stream_options`. Their prices are made
 * up, to make costs and budgets visible: 1 USD per million prompt tokens (0.1 from a cache, 1.25 into it) and 2 USD per
 * million completion tokens, 15 USD per million characters of speech, and 0.1
 * US cents per 10 seconds of audio.
 */
import { systemClock } from '../../base/clock.ts';
import type { ModelSettings, Pricing } from '../../base/config.ts';
import { parsePrice } from '../../base/money.ts';
import { openaiSpeech } from '../../formats/speech/index.ts';
import { openaiTranscription } from '../../formats/transcription/index.ts';
import { openaiVideos } from '../../formats/video/index.ts';
import type { ProviderKind } from '../provider.ts';
import { SIMULATED_LIMITS } from '../simulated/call.ts';
import { simulatedTransport } from '../simulated/transport.ts';

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

/** A model of another operation. */
function medium(upstreamId: string, name: string, from: string, to: string, price: Partial<Pricing>): ModelSettings {
  return {
    ...model('echo', name),
    id: `simulated/${upstreamId}`,
    upstreamId,
    contextLength: null,
    maxCompletionTokens: null,
    pricing: Object.freeze({ prompt: 0n, completion: 0n, ...price }),
    inputModalities: [from],
    outputModalities: [to],
    supportedParameters: [],
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
  speech: openaiSpeech({ formats: ['pcm', 'wav'], voice: 'tone' }),
  transcription: openaiTranscription({ verbose: true }),
  video: openaiVideos,
  models: [
    model('echo', 'Simulated: Echo'),
    model('script', 'Simulated: Script'),
    medium('speech', 'Simulated: Speech', 'text', 'speech', { inputCharacter: parsePrice('0.000015') }),
    medium('transcription', 'Simulated: Transcription', 'audio', 'transcription', {
      inputSecond: parsePrice('0.0001'),
    }),
    medium('video', 'Simulated: Video', 'text', 'video', { outputSecond: parsePrice('0.01') }),
  ],
  standIn: true,
  standInSwitch: 'GATEHOUSE_SIMULATED',
};
