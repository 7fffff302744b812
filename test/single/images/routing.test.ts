/** Pictures within budgets, by the next endpoint, in the lists of models, and for the clients that people have. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI from 'openai';
import { readRows } from '../../../src/testing/database/rows.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../../src/testing/gateway/gateway.ts';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAABAAAAAQACAYAAAAAAAAA';
const PIECES = {
  prompt: '0',
  completion: '0',
  output_images: [{ price: '0.04' }, { price: '0.10', variant: 'high 1024x1024' }],
};
const model = (upstream_id: string, id: string) => ({
  id,
  upstream_id,
  pricing: PIECES,
  input_modalities: ['text'],
  output_modalities: ['image'],
});
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      first: { kind: 'xai', model: model('grok-imagine-image', 'test/pair') },
      second: { kind: 'recraft', model: model('recraftv4', 'test/pair') },
      gpt: { kind: 'openai', model: model('gpt-image-1.5', 'test/gpt') },
      unpriced: { kind: 'openai', model: { output_modalities: ['image'], pricing: null, upstream_id: 'gpt-image-2' } },
      text: { kind: 'chat' },
    },
  },
);
const { upstream } = gateway;
const json = (value: unknown, status = 200) => ({
  status,
  headers: { 'content-type': 'application/json' },
  chunks: [JSON.stringify(value)],
});
const drawn = (...images: string[]) => json({ created: 1750000000, data: images.map((b64_json) => ({ b64_json })) });

async function keyWith(limit: number): Promise<string> {
  const response = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'pictures', limit }),
  });
  return ((await response.json()) as { key: string }).key;
}
const make = (body: Record<string, unknown>, key = INFERENCE_KEY) =>
  fetch(`${gateway.api}/images`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'Earth', ...body }),
  });

test('a limit must cover the most expensive possible image, or the request is 402 without an upstream call', async () => {
  upstream.script('gpt', drawn(PNG, PNG));
  const key = await keyWith(0.25);
  const before = upstream.requests('gpt').length;
  // Two at 0.10 at most; 0.04 each are charged.
  assert.equal((await make({ model: 'test/gpt', n: 2 }, key)).status, 200);
  assert.equal((await make({ model: 'test/gpt', n: 2 }, key)).status, 402);
  assert.equal(upstream.requests('gpt').length, before + 1);
  upstream.script('gpt', drawn(PNG));
  const last = await make({ model: 'test/gpt', quality: 'high', size: '1024x1024' }, key);
  assert.equal(((await last.json()) as { usage: { cost: number } }).usage.cost, 0.1);
  assert.equal((await make({ model: 'test/gpt' }, key)).status, 402);
});

test('a model without a price is refused to a key with a limit, and free of cost to one without', async () => {
  upstream.script('unpriced', drawn(PNG));
  assert.equal((await make({ model: 'test/unpriced' }, await keyWith(5))).status, 403);
  const body = (await (await make({ model: 'test/unpriced' })).json()) as { usage: object };
  assert.ok(!('cost' in body.usage));
});

test('the next endpoint makes the image if the first fails or cannot, and one row names it', async () => {
  upstream.script('first', json({ error: { message: 'busy' } }, 503));
  upstream.script('second', drawn(PNG));
  const order = { provider: { order: ['first', 'second'] }, user: 'failover' };
  assert.equal((await make({ model: 'test/pair', ...order })).status, 200);
  assert.equal(upstream.requests('first').length, 1);
  // Explicit pixels that the first does not make.
  assert.equal((await make({ model: 'test/pair', size: '1280x832', ...order })).status, 200);
  assert.equal(upstream.requests('first').length, 1);
  assert.equal(upstream.requests('second').length, 2);
  const entered = async () => (await readRows(gateway.target)).filter(({ tag }) => tag === 'failover');
  let rows = await entered();
  while (rows.length < 2) rows = await entered();
  assert.deepEqual(
    rows.map(({ status, cost }) => [status, cost]),
    Array(2).fill([200, 40_000_000n]),
  );
});

test('an upstream that refuses the prompt ends the request with its reason', async () => {
  const error = { message: 'Your request was rejected by our safety system.', code: 'moderation_blocked' };
  upstream.script('gpt', json({ error }, 400));
  const response = await make({ model: 'test/gpt' });
  assert.equal(response.status, 400);
  const body = (await response.json()) as { error: { metadata: { error_type: string } } };
  assert.equal(body.error.metadata.error_type, 'content_policy_violation');
});

test('a model that makes no images is refused by name', async () => {
  const response = await make({ model: 'test/text' });
  assert.equal(response.status, 400);
  assert.match(await response.text(), /wrong_endpoint/);
});

test('image models are listed with their parameters and prices', async () => {
  const list = (await (await gateway.get('/images/models')).json()) as {
    data: {
      id: string;
      endpoints: string;
      supports_streaming: boolean;
      supported_parameters: Record<string, unknown>;
    }[];
  };
  assert.deepEqual(
    list.data.map(({ id }) => id),
    ['test/pair', 'test/gpt', 'test/unpriced'],
  );
  const [pair, gpt] = list.data;
  assert.equal(gpt!.supports_streaming, true);
  assert.deepEqual(gpt!.supported_parameters['n'], { type: 'range', min: 1, max: 10 });
  assert.deepEqual(pair!.supported_parameters['resolution'], { type: 'enum', values: ['1K', '2K'] });
  assert.equal(gpt!.endpoints, '/api/v1/images/models/test/gpt/endpoints');
  const one = (await (await gateway.get('/images/models/test/gpt/endpoints')).json()) as {
    id: string;
    endpoints: Record<string, unknown>[];
  };
  assert.equal(one.id, 'test/gpt');
  assert.equal(one.endpoints[0]!['provider_slug'], 'gpt');
  assert.deepEqual(one.endpoints[0]!['pricing'], [
    { billable: 'output_image', unit: 'image', cost_usd: 0.04 },
    { billable: 'output_image', unit: 'image', cost_usd: 0.1, variant: 'high 1024x1024' },
  ]);
  assert.equal((await gateway.get('/images/models/test/text/endpoints')).status, 404);
  assert.equal((await gateway.get('/images/models/no/such/endpoints')).status, 404);
});

test('the openai library makes images, whole and streamed', async () => {
  const client = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  upstream.script('gpt', drawn(PNG));
  const answer = await client.images.generate({
    model: 'test/gpt',
    prompt: 'Earth',
    size: '1024x1024',
    quality: 'low',
  });
  assert.equal(answer.data?.[0]?.b64_json, PNG);
  assert.equal(answer.created, 1750000000);
  const events = [
    { type: 'image_generation.partial_image', b64_json: 'AAAA', partial_image_index: 0 },
    { type: 'image_generation.completed', b64_json: PNG, created_at: 1, usage: { input_tokens: 1, output_tokens: 2 } },
  ];
  upstream.script('gpt', {
    headers: { 'content-type': 'text/event-stream' },
    chunks: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
  });
  const stream = await client.images.generate({ model: 'test/gpt', prompt: 'Earth', stream: true });
  const seen: unknown[] = [];
  for await (const event of stream) seen.push([event.type, event.b64_json]);
  assert.deepEqual(seen, [
    ['image_generation.partial_image', 'AAAA'],
    ['image_generation.completed', PNG],
  ]);
  await assert.rejects(client.images.generate({ model: 'test/gpt', prompt: '' }), OpenAI.BadRequestError);
});

test('the openrouter library makes images and lists image models', async () => {
  const client = new OpenRouter({ serverURL: gateway.api, apiKey: INFERENCE_KEY });
  upstream.script('gpt', drawn(PNG));
  const answer = await client.images.generate({
    imageGenerationRequest: { model: 'test/gpt', prompt: 'Earth', aspectRatio: '3:2', n: 1 },
  });
  assert.ok('data' in answer);
  assert.equal(answer.data[0]?.b64Json, PNG);
  assert.equal(answer.usage?.cost, 0.04);
  const models = await client.images.listModels();
  assert.equal(models.data.length, 3);
  const endpoints = await client.images.listModelEndpoints({ author: 'test', slug: 'gpt' });
  assert.equal(endpoints.endpoints[0]?.pricing[0]?.costUsd, 0.04);
});
