/** The request members of `POST /chat/completions` by owner. One list for decoding and relaying. */

/**
 * Members for the gateway itself, never forwarded (`user` and `stream_options` are sent with the gateway's own values).
 */
export const GATEWAY_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'models',
  'provider',
  'route',
  'plugins',
  'transforms',
  'preset',
  'session_id',
  'trace',
  'debug',
  'usage',
  'user',
  'safety_identifier',
  'metadata',
  'deferred_tools',
  'stop_server_tools_when',
  'max_tool_calls',
  'include_reasoning',
]);

/** Members that decoding maps to the conversation. */
export const CONVERSATION_FIELDS: ReadonlySet<string> = new Set([
  'messages',
  'stream',
  'stream_options',
  'tools',
  'functions',
  'tool_choice',
  'function_call',
  'parallel_tool_calls',
  'reasoning',
  'reasoning_effort',
  'response_format',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'top_p',
  'top_k',
  'top_a',
  'min_p',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'seed',
  'stop',
  'logprobs',
  'top_logprobs',
  'logit_bias',
  'service_tier',
  'verbosity',
  'prediction',
  'prompt_cache_key',
  'n',
  'modalities',
  'audio',
  'image_config',
  'web_search_options',
  'cache_control',
]);

/** Tuning parameters that need no translation: wire name, name in the conversation's settings. */
export const PLAIN_SETTINGS = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
  ['top_a', 'topA'],
  ['min_p', 'minP'],
  ['frequency_penalty', 'frequencyPenalty'],
  ['presence_penalty', 'presencePenalty'],
  ['repetition_penalty', 'repetitionPenalty'],
  ['seed', 'seed'],
  ['logprobs', 'logprobs'],
  ['top_logprobs', 'topLogprobs'],
  ['logit_bias', 'logitBias'],
  ['parallel_tool_calls', 'parallelToolCalls'],
  ['verbosity', 'verbosity'],
  ['prediction', 'prediction'],
  ['prompt_cache_key', 'promptCacheKey'],
] as const;

/** `fast` is an alias of `priority`; no endpoint is faster, so `ultrafast` maps to it as well. */
export function serviceTier(tier: string): string {
  return tier === 'fast' || tier === 'ultrafast' ? 'priority' : tier;
}
