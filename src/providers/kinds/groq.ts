import { openaiSpeech } from '../../formats/speech/index.ts';
import { openaiTranscription } from '../../formats/transcription/index.ts';
import { openaiBatches } from '../batches/openai.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

const OPEN = { minimal: 'low', xhigh: 'high', max: 'high' };

/**
 * Groq rejects these parameters with 400 (console.groq.com/docs/openai), as well as unknown message members and
 * unsupported efforts (console.groq.com/docs/reasoning). Qwen's thinking is part of the text unless requested
 * separately.
 */
export const groq: ProviderKind = {
  ...chat,
  id: 'groq',
  name: 'Groq',
  baseUrl: 'https://api.groq.com/openai/v1',
  environment: 'GROQ_API_KEY',
  author: 'groq',
  service: { role: 'host', registryId: 'groq' },
  guide: {
    verifiedBy: 'recording',
    quirks: 'strict messages and parameters, thinking in a separate field or hidden on request, usage in `x_groq`',
  },
  // console.groq.com/docs/text-to-speech
  speech: openaiSpeech({ formats: ['wav', 'mp3', 'flac'], speeds: [0.5, 5], options: ['sample_rate'] }),
  // console.groq.com/docs/speech-to-text; only the detailed reply has the duration that is billed.
  transcription: openaiTranscription({ verbose: true }),
  // console.groq.com/docs/batch
  batches: openaiBatches({ paths: ['/chat/completions'], limits: { items: 50_000, bytes: 200 * 1024 * 1024 } }),
  dialect: {
    chat: {
      refuses: [
        'logprobs',
        'top_logprobs',
        'logit_bias',
        'top_k',
        'top_a',
        'min_p',
        'repetition_penalty',
        'verbosity',
        'prediction',
        'prompt_cache_key',
        'store',
      ],
      serviceTiers: ['auto', 'on_demand', 'flex', 'performance'],
      reasoningRules: [
        { models: /gpt-oss/, words: { ...OPEN, none: 'low' }, hide: { include_reasoning: false } },
        {
          models: /qwen|deepseek/,
          words: {
            minimal: 'default',
            low: 'default',
            medium: 'default',
            high: 'default',
            xhigh: 'default',
            max: 'default',
          },
          also: { reasoning_format: 'parsed' },
          hide: { reasoning_format: 'hidden' },
        },
        { words: { none: null, minimal: null, low: null, medium: null, high: null, xhigh: null, max: null } },
      ],
      messageFields: {
        system: ['role', 'content', 'name'],
        user: ['role', 'content', 'name'],
        assistant: ['role', 'content', 'name', 'tool_calls', 'function_call'],
        tool: ['role', 'content', 'tool_call_id'],
      },
      thinkTags: true,
    },
  },
};
