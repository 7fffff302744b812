/**
 * Names of attributes. `gen_ai.*` follows the semantic conventions for generative AI of OpenTelemetry 1.45.0, which are
 * still in development; `gen_ai.system` is the earlier name of `gen_ai.provider.name`, which older backends read.
 */

/** Written into every payload. */
export const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.45.0';
export const SERVICE_NAME = 'gatehouse';

export const GEN_AI = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  system: 'gen_ai.system',
  conversation: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  stream: 'gen_ai.request.stream',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheCreationTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  /** USD. Not part of the conventions; several backends read it. */
  cost: 'gen_ai.usage.cost',
} as const;

/** Values of `gen_ai.operation.name`, by the operations of this gateway. */
export const OPERATION_NAMES = {
  completions: 'chat',
  embeddings: 'embeddings',
  rerank: 'rerank',
  decisions: 'chat',
  video: 'generate_content',
  tts: 'generate_content',
  stt: 'generate_content',
  image: 'generate_content',
  moderation: 'moderation',
} as const;
