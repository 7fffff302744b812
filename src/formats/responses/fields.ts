/** Who consumes each request field of `POST /responses`. Decoder and relay share these lists. */
import type { Settings } from '../conversation/conversation.ts';

/**
 * Fields for the gateway itself; upstreams never see the client's values (`user` is sent hashed, `store` as false).
 * `previous_response_id`, `conversation` and `background` pass the check only with values that request nothing.
 */
export const OWN_FIELDS: readonly string[] = [
  'background',
  'conversation',
  'debug',
  'deferred_tools',
  'metadata',
  'models',
  'plugins',
  'preset',
  'previous_response_id',
  'provider',
  'route',
  'safety_identifier',
  'session_id',
  'stop_server_tools_when',
  'store',
  'trace',
  'transforms',
  'user',
];

/** Parameters whose value needs no translation: wire name to setting name. */
export const PLAIN_SETTINGS = [
  ['max_output_tokens', 'maxOutputTokens'],
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
  ['frequency_penalty', 'frequencyPenalty'],
  ['presence_penalty', 'presencePenalty'],
  ['top_logprobs', 'topLogprobs'],
  ['parallel_tool_calls', 'parallelToolCalls'],
  ['prompt_cache_key', 'promptCacheKey'],
] as const satisfies readonly (readonly [string, keyof Settings])[];

/** Fields that decoding maps into the conversation. */
export const CONVERSATION_FIELDS: readonly string[] = [
  ...PLAIN_SETTINGS.map(([field]) => field),
  'cache_control',
  'image_config',
  'input',
  'instructions',
  'modalities',
  'model',
  'prompt',
  'reasoning',
  'service_tier',
  'stream',
  'stream_options',
  'text',
  'tool_choice',
  'tools',
];

/** Value of `include` that requests log probabilities. */
export const INCLUDE_LOGPROBS = 'message.output_text.logprobs';
/** Value of `include` that requests encrypted reasoning, which can be sent back although nothing is stored. */
export const INCLUDE_ENCRYPTED = 'reasoning.encrypted_content';

/** `fast` and `ultrafast` are other names for `priority`. */
export function serviceTier(tier: string): string {
  return tier === 'fast' || tier === 'ultrafast' ? 'priority' : tier;
}
