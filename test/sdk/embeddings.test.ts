/** Client libraries, unmodified, asking for vectors and rankings. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { CohereClient } from 'cohere-ai';
import OpenAI from 'openai';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

const pricing = { prompt: '0.000001', completion: '0', request: '0.001' };
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    env: { GATEHOUSE_NAMESPACE: 'openrouter' },
    providers: {
      vectors: { kind: 'openai', model: { output_modalities: ['embeddings'], pricing } },
      google: { kind: 'google', model: { output_modalities: ['embeddings'], pricing } },
      ranks: { kind: 'cohere', model: { output_modalities: ['rerank'], pricing } },
    },
  },
);

const json = { 'content-type': 'application/json' };
const openai = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api, maxRetries: 0 });
const openrouter = new OpenRouter({ apiKey: INFERENCE_KEY, serverURL: gateway.api, retryConfig: { strategy: 'none' } });

function base64Of(numbers: number[]): string {
  return Buffer.from(Float32Array.from(numbers).buffer).toString('base64');
}

function scriptVectors(embedding: unknown): void {
  const body = {
    object: 'list',
    data: [{ object: 'embedding', index: 0, embedding }],
    usage: { prompt_tokens: 2, total_tokens: 2 },
  };
  gateway.upstream.script('vectors', [{ headers: json, chunks: [JSON.stringify(body)] }]);
}

const scriptRanks = () =>
  gateway.upstream.script('ranks', [
    {
      headers: json,
      chunks: [
        '{"id":"r","results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.2}],"meta":{"billed_units":{"search_units":1}}}',
      ],
    },
  ]);

test('openai: it asks for base64 by default, and its vectors have their own length whatever the upstream sends', async () => {
  scriptVectors(base64Of([0.5, -1, 0.25]));
  const packed = await openai.embeddings.create({ model: 'test/vectors', input: 'a' });
  assert.deepEqual([...packed.data[0]!.embedding], [0.5, -1, 0.25]);
  scriptVectors([0.5, -1, 0.25]);
  const plain = await openai.embeddings.create({ model: 'test/vectors', input: 'a' });
  assert.deepEqual([...plain.data[0]!.embedding], [0.5, -1, 0.25]);
  assert.equal(plain.usage.prompt_tokens, 2);
});

test('94 | openai: a service that knows nothing of base64 is converted, in order', async () => {
  const body = { embeddings: [{ values: [0.5, -1.0, 0.25, 2.0] }, { values: [1, 0, 0, 0] }] };
  const script = () => gateway.upstream.script('google', [{ headers: json, chunks: [JSON.stringify(body)] }]);
  script();
  const { data } = await openai.embeddings.create({ model: 'test/google', input: ['a', 'b'] });
  assert.deepEqual(
    data.map(({ index, embedding }) => [index, [...embedding]]),
    [
      [0, [0.5, -1, 0.25, 2]],
      [1, [1, 0, 0, 0]],
    ],
  );
  script();
  const response = await gateway.post('/embeddings', {
    model: 'test/google',
    input: ['a', 'b'],
    encoding_format: 'base64',
  });
  const raw = (await response.json()) as { data: { embedding: string }[] };
  assert.equal(raw.data[0]!.embedding, 'AAAAPwAAgL8AAIA+AAAAQA==');
});

test('@openrouter/sdk: vectors and rankings pass its schemas', async () => {
  scriptVectors([0.5, -1, 0.25]);
  const vectors = (await openrouter.embeddings.generate({
    requestBody: { model: 'test/vectors', input: 'a' },
  })) as { data: { embedding: unknown }[]; usage: { cost: number } };
  assert.deepEqual(vectors.data[0]!.embedding, [0.5, -1, 0.25]);
  assert.ok(vectors.usage.cost > 0);
  scriptRanks();
  const ranked = (await openrouter.rerank.rerank({
    requestBody: { model: 'test/ranks', query: 'q', documents: ['a', 'b'] },
  })) as { results: { index: number; relevanceScore: number; document: { text: string } }[] };
  assert.deepEqual(
    ranked.results.map(({ index, relevanceScore, document }) => [index, relevanceScore, document.text]),
    [
      [1, 0.9, 'b'],
      [0, 0.2, 'a'],
    ],
  );
});

test('cohere-ai: rankings by the path that its first version has', async () => {
  const cohere = new CohereClient({ token: INFERENCE_KEY, environment: gateway.url });
  scriptRanks();
  const { results } = await cohere.rerank({ model: 'test/ranks', query: 'q', documents: ['a', 'b'], topN: 2 });
  assert.deepEqual(
    results.map(({ index, relevanceScore }) => [index, relevanceScore]),
    [
      [1, 0.9],
      [0, 0.2],
    ],
  );
});
