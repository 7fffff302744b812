/** Which request fields of `POST /responses` are whose. One list for decoding and for relaying. */
import type { Settings } from '../conversation/conversation.ts';

/**
 * Fields for the gateway itself (`user` goes out in our own words, `store` as false). No upstream sees them.
 * `previous_response_id`, `conversation` and `background` ask for nothing where they come as far as this.
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

/** Knobs whose value needs no translation, wire name to name in the conversation's settings. */
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

/** Fields that decoding gives a place in the conversation. */
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

/** What asks for log probabilities, in `include`. */
export const INCLUDE_LOGPROBS = 'message.output_text.logprobs';
/** What asks for reasoning that can be sent back although nothing is stored, in `include`. */
export const INCLUDE_ENCRYPTED = 'reasoning.encrypted_content';

/** `fast` is another name of `priority`. */
export function serviceTier(tier: string): string {
  return tier === 'fast' || tier === 'ultrafast' ? 'priority' : tier;
}
