/** Models without a price: `usage.cost` is absent, because typed clients expect a number. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { createOpenRouter } from 'ai-sdk-provider-3';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const unpriced = { pricing: undefined };
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    env: { GATEHOUSE_NAMESPACE: 'openrouter' },
    providers: {
      chat: { model: unpriced },
      messages: { kind: 'messages', model: unpriced },
      responses: { kind: 'responses', model: unpriced },
      vectors: { kind: 'openai', model: { output_modalities: ['embeddings'], ...unpriced } },
      ranks: { kind: 'cohere', model: { output_modalities: ['rerank'], ...unpriced } },
      images: { kind: 'openai', model: { output_modalities: ['image'], ...unpriced } },
    },
  },
);

const TOLD = { text: 'hi', usage: { input: 12, output: 7 } };
const UPSTREAM_COST = { cost: 0.5, is_byok: true, cost_details: { upstream_inference_cost: 0.4 } };

/** What a gateway as upstream says of its own cost must not look like ours. */
function withTheirCost(answer: Answer): Answer {
  const usage = (text: string) =>
    text.replace(/"usage":\{/g, `"usage":{${JSON.stringify(UPSTREAM_COST).slice(1, -1)},`);
  return { ...answer, chunks: answer.chunks!.map((chunk) => (typeof chunk === 'string' ? usage(chunk) : chunk)) };
}

const UPSTREAMS: Record<string, (stream: boolean) => Answer> = {
  chat: (stream) => answerOf('chat', stream, TOLD),
  messages: (stream) => answerOf('messages', stream, TOLD),
  responses: (stream) => responsesAnswer(stream, TOLD),
};

const CONVERSATIONS: [string, (model: string, stream: boolean) => object][] = [
  ['/chat/completions', (model, stream) => ({ model, stream, messages: [{ role: 'user', content: 'hi' }] })],
  ['/messages', (model, stream) => ({ model, stream, max_tokens: 99, messages: [{ role: 'user', content: 'hi' }] })],
  ['/responses', (model, stream) => ({ model, stream, input: 'hi' })],
  ['/completions', (model, stream) => ({ model, stream, prompt: 'hi' })],
];

function assertNoCost(text: string): void {
  assert.doesNotMatch(text, /"cost|upstream_inference/);
}

for (const [route, body] of CONVERSATIONS) {
  for (const [upstream, answer] of Object.entries(UPSTREAMS)) {
    for (const stream of [false, true]) {
      test(`${route} names no cost, ${stream ? 'streamed' : 'whole'}, from a ${upstream} upstream`, async () => {
        gateway.upstream.script(upstream, withTheirCost(answer(stream)));
        const reply = await gateway.post(route, body(`test/${upstream}`, stream));
        const text = await reply.text();
        assert.equal(reply.status, 200, text);
        assert.match(text, /"is_byok":false/);
        assertNoCost(text);
      });
    }
  }
}

const VECTORS = wholeOf({
  object: 'list',
  data: [{ object: 'embedding', index: 0, embedding: [0.5, 1] }],
  usage: { prompt_tokens: 2, total_tokens: 2, ...UPSTREAM_COST },
});
const RANKS = wholeOf({
  id: 'r',
  results: [{ index: 0, relevance_score: 0.9 }],
  meta: { billed_units: { search_units: 1 } },
});
const IMAGES = wholeOf({ created: 1, data: [{ b64_json: 'iVBORw0KGgo=' }], usage: UPSTREAM_COST });

const SINGLE: [string, string, Answer, object][] = [
  ['/embeddings', 'vectors', VECTORS, { input: 'hi' }],
  ['/rerank', 'ranks', RANKS, { query: 'q', documents: ['a'] }],
  ['/images', 'images', IMAGES, { prompt: 'a cat' }],
];

for (const [route, upstream, answer, body] of SINGLE) {
  test(`${route} names no cost`, async () => {
    gateway.upstream.script(upstream, answer);
    const reply = await gateway.post(route, { model: `test/${upstream}`, ...body });
    const text = await reply.text();
    assert.equal(reply.status, 200, text);
    assertNoCost(text);
  });
}

test('a cached answer of such a model costs 0, which is known', async () => {
  const body = { model: 'test/chat', messages: [{ role: 'user', content: 'once more' }] };
  gateway.upstream.script('chat', answerOf('chat', false, TOLD));
  const cached = { 'x-svc-cache': 'true' };
  assertNoCost(await (await gateway.post('/chat/completions', body, cached)).text());
  const hit = (await (await gateway.post('/chat/completions', body, cached)).json()) as { usage: { cost: number } };
  assert.equal(hit.usage.cost, 0);
});

test('@openrouter/ai-sdk-provider 3 reads answers, streams and vectors', async () => {
  const openrouter = createOpenRouter({ baseURL: gateway.api, apiKey: INFERENCE_KEY });
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] }];
  gateway.upstream.script('chat', [answerOf('chat', false, TOLD), answerOf('chat', true, TOLD)]);
  const whole = await openrouter.chat('test/chat').doGenerate({ prompt });
  assert.deepEqual(
    whole.content.map((part) => part.type === 'text' && part.text),
    ['hi'],
  );
  const { stream } = await openrouter.chat('test/chat').doStream({ prompt });
  const parts = [];
  for await (const part of stream) parts.push(part);
  assert.deepEqual(
    parts.filter(({ type }) => type === 'error'),
    [],
  );
  assert.equal(parts.at(-1)?.type, 'finish');
  gateway.upstream.script('vectors', VECTORS);
  const { embeddings } = await openrouter.textEmbeddingModel('test/vectors').doEmbed({ values: ['hi'] });
  assert.deepEqual(embeddings, [[0.5, 1]]);
});

test('@openrouter/sdk reads vectors and rankings', async () => {
  const client = new OpenRouter({ serverURL: gateway.api, apiKey: INFERENCE_KEY, retryConfig: { strategy: 'none' } });
  gateway.upstream.script('vectors', VECTORS);
  await client.embeddings.generate({ requestBody: { model: 'test/vectors', input: 'hi' } });
  gateway.upstream.script('ranks', RANKS);
  await client.rerank.rerank({ requestBody: { model: 'test/ranks', query: 'q', documents: ['a'] } });
});
