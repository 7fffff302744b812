/** Faults of embeddings, rankings and images that users of other gateways met, each tried on a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    // The image of these tests is on loopback.
    yaml: { egress: { networks: ['127.0.0.0/8'], ports: ['1-65535'] } },
    providers: {
      gemini: { kind: 'google', model: { output_modalities: ['embeddings'] } },
      cohere: {
        kind: 'cohere',
        model: { output_modalities: ['rerank'], pricing: { prompt: '0', completion: '0', request: '0.002' } },
      },
      painter: { kind: 'openai', model: { upstream_id: 'gpt-image-1', output_modalities: ['image'] } },
    },
  },
);

// biome-ignore lint/suspicious/noExplicitAny: answers and bodies of upstreams
type Json = any;

async function post(path: string, body: object): Promise<{ status: number; json: Json }> {
  const response = await gateway.post(path, body);
  return { status: response.status, json: await response.json() };
}

test('94 | vectors have the requested encoding, one for each input, in order', async () => {
  const embeddings = [{ values: [0.5, -1.0, 0.25, 2.0] }, { values: [1, 0, 0, 0] }];
  gateway.upstream.script('gemini', { ...wholeOf({ embeddings }), repeat: true });
  const request = { model: 'test/gemini', input: ['a', 'b'] };
  const { json } = await post('/embeddings', { ...request, encoding_format: 'base64' });
  assert.deepEqual(
    json.data.map(({ index, embedding }: Json) => [index, embedding]),
    [
      [0, 'AAAAPwAAgL8AAIA+AAAAQA=='],
      [1, 'AACAPwAAAAAAAAAAAAAAAA=='],
    ],
  );
  for (const format of [{}, { encoding_format: 'float' }]) {
    const floats = await post('/embeddings', { ...request, ...format });
    assert.deepEqual(
      floats.json.data.map(({ embedding }: Json) => embedding),
      embeddings.map(({ values }) => values),
    );
  }
});

test('95 | the best document is first, with index and text, and invalid rankings are upstream failures', async () => {
  const request = {
    model: 'test/cohere',
    query: 'capital',
    documents: ['Carson City', { text: 'Washington' }, 'Rome'],
    top_n: 2,
  };
  const meta = { billed_units: { search_units: 1 } };
  const ranked = (...indexes: number[]) =>
    wholeOf({
      id: 'x',
      results: indexes.map((index) => ({ index, relevance_score: index === 1 ? 0.98 : 0.1 })),
      meta,
    });
  gateway.upstream.script('cohere', ranked(2, 1));
  const { json } = await post('/rerank', request);
  assert.deepEqual(json.results, [
    { index: 1, relevance_score: 0.98, document: { text: 'Washington' } },
    { index: 2, relevance_score: 0.1, document: { text: 'Rome' } },
  ]);
  assert.equal(json.usage.search_units, 1);
  for (const nonsense of [ranked(1, 1), ranked(1, 3), ranked(1, -1)]) {
    gateway.clock.jump(600_000);
    gateway.upstream.script('cohere', nonsense);
    assert.equal((await post('/rerank', request)).status, 502);
  }
  gateway.clock.jump(600_000);
  gateway.upstream.script('cohere', ranked(2, 1, 0));
  assert.equal((await post('/rerank', request)).json.results.length, 2, 'more than was asked for');
  for (const search_units of [-5, 1e30]) {
    const told = { index: 1, relevance_score: 1 };
    gateway.upstream.script('cohere', wholeOf({ results: [told], meta: { billed_units: { search_units } } }));
    const { usage } = (await post('/rerank', request)).json;
    assert.deepEqual([usage.search_units, usage.cost], [1, 0.002], 'units that no answer can have');
  }
  for (const top_n of [0, -1, 1.5]) assert.equal((await post('/rerank', { ...request, top_n })).status, 400);
});

test('96 | images are base64 whatever the upstream returns, and response_format is not sent to models that refuse it', async () => {
  gateway.upstream.script('picture', {
    headers: { 'content-type': 'image/png' },
    chunks: [Buffer.from(PNG, 'base64')],
  });
  const usage = { input_tokens: 5, output_tokens: 100, total_tokens: 105 };
  const data = [{ b64_json: PNG }, { url: `${gateway.upstream.url}/picture/2.png` }];
  gateway.upstream.script('painter', [wholeOf({ created: 1, data, usage }), wholeOf({ created: 1, data: [] })]);
  const request = { model: 'test/painter', prompt: 'Earth', n: 2 };
  const { json } = await post('/images', request);
  assert.deepEqual(
    json.data.map(({ b64_json }: Json) => b64_json),
    [PNG, PNG],
  );
  assert.deepEqual([json.usage.prompt_tokens, json.usage.completion_tokens, json.usage.total_tokens], [5, 100, 105]);
  assert.ok(!('response_format' in (gateway.upstream.requests('painter').at(-1)!.json as object)));
  assert.equal((await post('/images', request)).status, 502);
});
