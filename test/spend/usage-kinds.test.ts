/** The token kinds that each family of services reports, and their cost to the nano-dollar. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';

/** No two kinds cost the same, so that a token in the wrong one is seen. USD a million: 1, 2, 0.1, 1.3, 1.7, 3, 5, 7, 11, 13. */
const pricing = {
  prompt: '0.000001',
  completion: '0.000002',
  input_cache_read: '0.0000001',
  input_cache_write: '0.0000013',
  input_cache_write_1h: '0.0000017',
  internal_reasoning: '0.000003',
  audio: '0.000005',
  audio_output: '0.000007',
  image_token: '0.000011',
  image_output: '0.000013',
  overrides: [{ min_prompt_tokens: 10_000, prompt: '0.000019', completion: '0.000023' }],
};

const KINDS = ['chat', 'messages', 'responses', 'gemini', 'converse', 'cohere'] as const;
type Kind = (typeof KINDS)[number];

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: Object.fromEntries(KINDS.map((kind) => [kind, { kind, model: { pricing } }])) },
);

const gemini = (usageMetadata: object) => ({
  candidates: [{ content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP' }],
  usageMetadata,
});

/** The reply of the service, and its cost in millionths of a dollar with the sum that it comes from. */
const CASES: [string, Kind, object, number][] = [
  [
    'sound and thinking are inside, and so is the cache',
    'chat',
    {
      id: 'c',
      choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: 100,
        completion_tokens: 50,
        total_tokens: 150,
        prompt_tokens_details: { cached_tokens: 40, audio_tokens: 10 },
        completion_tokens_details: { reasoning_tokens: 20, audio_tokens: 5 },
      },
    },
    50 * 1 + 40 * 0.1 + 10 * 5 + 25 * 2 + 20 * 3 + 5 * 7,
  ],
  [
    'a prompt past the mark has its prices',
    'chat',
    {
      id: 'c',
      choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 20_000, completion_tokens: 50, total_tokens: 20_050 },
    },
    20_000 * 19 + 50 * 23,
  ],
  [
    'caches are not part of the input, and the two lifetimes of a write are distinct',
    'messages',
    {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text: 'ok' }],
      stop_reason: 'end_turn',
      usage: {
        input_tokens: 100,
        cache_read_input_tokens: 40,
        cache_creation_input_tokens: 30,
        cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 },
        output_tokens: 50,
      },
    },
    100 * 1 + 40 * 0.1 + 20 * 1.3 + 10 * 1.7 + 50 * 2,
  ],
  [
    'cache and thinking are inside',
    'responses',
    {
      id: 'r',
      object: 'response',
      status: 'completed',
      output: [
        {
          id: 'i',
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'ok', annotations: [] }],
        },
      ],
      usage: {
        input_tokens: 100,
        input_tokens_details: { cached_tokens: 40 },
        output_tokens: 50,
        output_tokens_details: { reasoning_tokens: 20 },
        total_tokens: 150,
      },
    },
    60 * 1 + 40 * 0.1 + 30 * 2 + 20 * 3,
  ],
  [
    'thinking is not part of the output, audio has its own modality',
    'gemini',
    gemini({
      promptTokenCount: 100,
      cachedContentTokenCount: 40,
      candidatesTokenCount: 50,
      thoughtsTokenCount: 20,
      totalTokenCount: 170,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 90 },
        { modality: 'AUDIO', tokenCount: 10 },
      ],
    }),
    50 * 1 + 40 * 0.1 + 10 * 5 + 50 * 2 + 20 * 3,
  ],
  [
    'images in input and output have their prices',
    'gemini',
    gemini({
      promptTokenCount: 100,
      candidatesTokenCount: 50,
      totalTokenCount: 150,
      promptTokensDetails: [{ modality: 'IMAGE', tokenCount: 60 }],
      candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 30 }],
    }),
    40 * 1 + 60 * 11 + 20 * 2 + 30 * 13,
  ],
  [
    'caches are not part of the input, and the two lifetimes of a write are distinct',
    'converse',
    {
      output: { message: { role: 'assistant', content: [{ text: 'ok' }] } },
      stopReason: 'end_turn',
      usage: {
        inputTokens: 100,
        outputTokens: 50,
        totalTokens: 220,
        cacheReadInputTokens: 40,
        cacheWriteInputTokens: 30,
        cacheDetails: [
          { ttl: '5m', inputTokens: 20 },
          { ttl: '1h', inputTokens: 10 },
        ],
      },
    },
    100 * 1 + 40 * 0.1 + 20 * 1.3 + 10 * 1.7 + 50 * 2,
  ],
  [
    'billed units are what is charged',
    'cohere',
    {
      id: 'c',
      finish_reason: 'COMPLETE',
      message: { role: 'assistant', content: [{ type: 'text', text: 'ok' }] },
      usage: {
        billed_units: { input_tokens: 30, output_tokens: 20 },
        tokens: { input_tokens: 100, output_tokens: 50 },
      },
    },
    30 * 1 + 20 * 2,
  ],
];

for (const [what, kind, reply, millionths] of CASES) {
  test(`${kind}: ${what}`, async () => {
    gateway.upstream.script(kind, wholeOf(reply));
    const response = await gateway.post('/chat/completions', {
      model: `test/${kind}`,
      messages: [{ role: 'user', content: 'hi' }],
      max_tokens: 100,
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    const { cost } = (JSON.parse(text) as { usage: { cost: number } }).usage;
    assert.equal(Math.round(cost * 1e9), Math.round(millionths * 1e3), text);
  });
}
