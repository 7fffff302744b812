import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isContextOverflow, overflowFigures } from './context-overflow.ts';

/** Wordings from the services' documentation, source code and user reports. */
const OVERFLOWS: readonly [service: string, status: number | null, message: string][] = [
  ['anthropic', 400, 'prompt is too long: 210000 tokens > 200000 maximum'],
  [
    'anthropic',
    400,
    'input length and `max_tokens` exceed context limit: 188059 + 20000 > 200000, decrease input length',
  ],
  [
    'openai',
    400,
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens.",
  ],
  ['openai', 400, 'Your input exceeds the context window of this model. Please adjust your input and try again.'],
  [
    'openai',
    400,
    'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens.',
  ],
  ['openai', null, 'context_length_exceeded'],
  ['openai', 400, "Invalid 'input': string too long. Expected a string with maximum length 10485760, but got 10890000"],
  ['google', 400, 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).'],
  ['google', 400, 'The input token count exceeds the maximum number of tokens allowed 1048576.'],
  [
    'vertex',
    400,
    'Unable to submit request because the input token count is 40000 but model only supports up to 32768.',
  ],
  ['bedrock', 400, 'Input is too long for requested model.'],
  ['bedrock', 400, 'Too many input tokens. Max input tokens: 8192, request input token count: 9000'],
  [
    'bedrock',
    400,
    'The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length.',
  ],
  ['cohere', 400, 'too many tokens: size limit exceeded by 25836 tokens. Try using shorter or fewer inputs.'],
  ['xai', 400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."],
  ['groq', 400, 'Please reduce the length of the messages or completion.'],
  [
    'cerebras',
    400,
    'Please reduce the length of the messages or completion. Current length is 8305 while limit is 8192',
  ],
  ['mistral', 400, 'Prompt contains 40101 tokens, too large for model with 32768 maximum context length'],
  [
    'deepseek',
    400,
    "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (60000 in the messages, 10000 in the completion).",
  ],
  ['moonshot', 400, 'Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)'],
  ['zai', 400, 'Prompt exceeds max length'],
  ['zai', 400, 'Prompt 超长'],
  ['zai', null, 'model_context_window_exceeded'],
  ['minimax', 400, 'invalid params, context window exceeds limit (2013)'],
  ['alibaba', 400, '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]'],
  ['together', 422, "The input (516368 tokens) is longer than the model's context length (262144 tokens)."],
  ['fireworks', 400, 'The prompt is too long: 140000, model maximum context length: 131071'],
  [
    'openrouter',
    400,
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens",
  ],
  ['poolside', 400, 'Input length 131393 exceeds the maximum allowed input length of 131040 tokens.'],
  ['copilot', 400, 'prompt token count of 5000 exceeds the limit of 4096'],
  ['perplexity', 400, 'The total length of all messages is too long. too_many_prompt_tokens'],
  ['siliconflow', 400, 'length of prompt_tokens (40000) must be less than max_seq_len (32768).'],
  [
    'vllm',
    400,
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 1000 input tokens",
  ],
  ['sglang', 400, "Requested token count exceeds the model's maximum context length of 131072 tokens."],
  ['sglang', 400, "Input length (265330) exceeds model's maximum context length (262144)."],
  ['llama.cpp', 400, 'the request exceeds the available context size, try increasing it'],
  ['llama.cpp', 500, 'Context size has been exceeded.'],
  ['ollama', 400, 'prompt too long; exceeded max context length by 1119046 tokens'],
  ['ollama', 400, 'the input length exceeds the context length'],
  ['lmstudio', 400, 'The number of tokens to keep from the initial prompt is greater than the context length.'],
  ['tgi', 422, 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096'],
  ['tgi', 422, 'Input validation error: `inputs` must have less than 1024 tokens. Given: 2000'],
  ['litellm', 400, 'litellm.ContextWindowExceededError: the request does not fit'],
];

/** Other errors with similar wording. */
const OTHERS: readonly [service: string, status: number | null, message: string][] = [
  [
    'openai',
    400,
    "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 46 instead. string_above_max_length",
  ],
  ['openai', 400, 'max_tokens is too large: 100000. This model supports at most 16384 completion tokens.'],
  ['openai', 429, 'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 50000.'],
  ['groq', 413, 'Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8000'],
  ['anthropic', 400, 'messages: at least one message is required'],
  ['anthropic', 400, 'max_tokens: 300000 > 128000, which is the maximum allowed number of output tokens'],
  ['google', 429, 'Quota exceeded for metric: generate_content_paid_tier_input_token_count, limit: 1000000'],
  ['google', 400, 'Request payload size exceeds the limit: 20971520 bytes.'],
  ['any', 400, 'tools[0].function.name exceeds the maximum length of 64'],
  ['any', 400, 'The number of images exceeds the maximum allowed'],
  ['any', 504, 'context deadline exceeded'],
  ['any', 500, 'Internal server error'],
  ['any', 401, 'The context length key is invalid'],
  ['any', 400, 'Your credit limit is exceeded: input tokens exceed the limit of your plan'],
];

test('a context overflow is recognized in the wording of every service', () => {
  for (const [service, status, message] of OVERFLOWS)
    assert.equal(isContextOverflow(status, message), true, `${service}: ${message}`);
});

test('similarly worded limits are not a context overflow', () => {
  for (const [service, status, message] of OTHERS)
    assert.equal(isContextOverflow(status, message), false, `${service}: ${message}`);
});

test('the token counts of an overflow are read unless they contradict it', () => {
  const read = (service: string, at = 0) => {
    const [, , message] = OVERFLOWS.filter(([name]) => name === service)[at]!;
    return overflowFigures(message);
  };
  assert.deepEqual(read('anthropic'), { input: 210_000, limit: 200_000 });
  assert.deepEqual(read('anthropic', 1), { input: 188_059, output: 20_000, limit: 200_000 });
  assert.deepEqual(read('openai'), { input: 8_545, limit: 8_192 });
  assert.deepEqual(read('google'), { input: 1_196_265, limit: 1_048_575 });
  assert.deepEqual(read('xai'), { input: 537_812, limit: 131_072 });
  assert.deepEqual(read('mistral'), { input: 40_101, limit: 32_768 });
  assert.deepEqual(read('deepseek'), { input: 60_000, output: 10_000, limit: 65_536 });
  assert.deepEqual(read('moonshot'), { input: 300_000, limit: 262_144 });
  assert.deepEqual(read('together'), { input: 516_368, limit: 262_144 });
  assert.deepEqual(read('openrouter'), { input: 200_000, limit: 131_072 });
  assert.deepEqual(read('vllm'), { input: 1_000, output: 32_000, limit: 32_768 });
  assert.deepEqual(read('sglang', 1), { input: 265_330, limit: 262_144 });
  for (const service of ['bedrock', 'groq', 'zai', 'alibaba', 'ollama'])
    assert.equal(read(service), undefined, service);
  assert.equal(overflowFigures('prompt is too long: 5 tokens > 200000 maximum'), undefined);
});
