/** `POST /moderations` through a whole gateway: verdicts in order, none missing, free or priced. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import OpenAI from 'openai';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

const model = { output_modalities: ['moderation'], pricing: { prompt: '0.0000001', completion: '0' } };
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      omni: {
        kind: 'openai',
        model: { ...model, id: 'openai/omni-moderation-latest', pricing: { prompt: '0', completion: '0' } },
      },
      spare: { kind: 'chat', model: { ...model, id: 'openai/omni-moderation-latest' } },
      mistral: { kind: 'mistral', model },
    },
  },
);
const headers = { 'content-type': 'application/json' };
const script = (key: string, body: unknown) =>
  gateway.upstream.script(key, [{ headers, chunks: [JSON.stringify(body)] }]);
const verdict = (flagged: boolean) => ({
  flagged,
  categories: { hate: false, violence: flagged },
  category_scores: { hate: 0.1, violence: 0.9 },
});
const openai = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api, maxRetries: 0 });

test('openai: verdicts in the order of the texts, without a model as with one', async () => {
  const results = [verdict(false), verdict(true)];
  script('omni', { id: 'modr-1', model: 'omni-moderation-latest', results });
  const answer = await openai.moderations.create({ input: ['kind', 'cruel'] });
  assert.deepEqual(answer.results as unknown, results);
  assert.match(answer.id, /^gen-/);
  assert.deepEqual(gateway.upstream.requests('omni').at(-1)!.json, {
    model: 'upstream-omni',
    input: ['kind', 'cruel'],
  });
  const row = await gateway.get(`/generation?id=${answer.id}`);
  assert.partialDeepStrictEqual(((await row.json()) as { data: unknown }).data, {
    api_type: 'moderation',
    total_cost: 0,
  });
});

test('openai: a text with an image has one verdict', async () => {
  script('omni', { results: [verdict(true)] });
  const input = [
    { type: 'text' as const, text: 'look' },
    { type: 'image_url' as const, image_url: { url: 'https://example.com/a.png' } },
  ];
  const answer = await openai.moderations.create({ model: 'openai/omni-moderation-latest', input });
  assert.equal(answer.results[0]!.flagged, true);
});

test('a service that leaves the sum to the client gets one, and is paid by token', async () => {
  script('mistral', { results: [{ categories: { pii: true } }], usage: { prompt_tokens: 50 } });
  const response = await gateway.post('/moderations', { model: 'test/mistral', input: 'hi' });
  const { results, usage } = (await response.json()) as { results: unknown; usage: { cost: number } };
  assert.deepEqual(results, [{ flagged: true, categories: { pii: true } }]);
  assert.equal(usage.cost, 0.000005);
});

test('a reply with too few verdicts is a failure: the next endpoint is tried', async () => {
  script('omni', { results: [verdict(false)] });
  script('spare', { results: [verdict(false), verdict(true)] });
  const answer = await openai.moderations.create({ input: ['a', 'b'] });
  assert.equal(answer.results[1]!.flagged, true);
});

test('bad input names the field', async () => {
  for (const [body, field] of [
    [{}, 'input'],
    [{ input: '' }, 'input'],
    [{ input: [] }, 'input'],
    [{ input: ['a', 7] }, 'input[1]'],
    [{ input: [{ type: 'text' }] }, 'input[0].text'],
    [{ input: [{ type: 'image_url', image_url: {} }] }, 'input[0].image_url.url'],
    [{ input: [{ type: 'video' }] }, 'input[0].type'],
    [{ model: 'test/mistral', input: [{ type: 'image_url', image_url: { url: 'https://a.b/c' } }] }, 'input'],
  ] as const) {
    const response = await gateway.post('/moderations', body);
    const { error } = (await response.json()) as { error: { message: string } };
    assert.equal(response.status, 400, error.message);
    assert.ok(error.message.includes(field), error.message);
  }
});
