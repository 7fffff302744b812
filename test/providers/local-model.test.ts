/** The local model: true vectors and true ranking without any account, next to everything else that the gateway does. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) });

interface Vectors {
  data: { index: number; embedding: number[] }[];
  usage: { prompt_tokens: number; cost: number };
}

async function embed(input: unknown, more: Record<string, unknown> = {}): Promise<Vectors> {
  const response = await gateway.post('/embeddings', { model: 'local/use-lite', input, ...more });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text) as Vectors;
}

const LONG = Array.from({ length: 64 }, () => 'some words of a longer text '.repeat(20));

const product = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, value, index) => sum + value * b[index]!, 0);

test('a gateway without any provider lists the local model and gives vectors that mean something', async () => {
  const { data: models } = (await (await gateway.get('/embeddings/models')).json()) as { data: { id: string }[] };
  assert.ok(models.some(({ id }) => id === 'local/use-lite'));
  const { data, usage } = await embed(['a cat sat on the mat', 'a kitten is sitting on a rug', 'stock prices fell']);
  const [cat, kitten, stocks] = data.map(({ embedding }) => embedding) as [number[], number[], number[]];
  assert.deepEqual([cat.length, kitten.length, stocks.length], [512, 512, 512]);
  assert.ok(Math.abs(product(cat, cat) - 1) < 1e-3);
  assert.ok(product(cat, kitten) > product(cat, stocks) + 0.2);
  assert.ok(usage.prompt_tokens > 10);
  assert.equal(usage.cost, 0);
});

test('one text gives the same vector alone and among others, as numbers and as base64', async () => {
  const input = Array.from({ length: 70 }, (_, index) => `sentence number ${index}`);
  const [many, alone, packed] = await Promise.all([
    embed(input),
    embed(input[40]),
    gateway.post('/embeddings', { model: 'local/use-lite', input: input[40], encoding_format: 'base64' }),
  ]);
  assert.deepEqual(
    many.data.map(({ index }) => index),
    input.map((_, index) => index),
  );
  const one = alone.data[0]!.embedding;
  assert.ok(product(many.data[40]!.embedding, one) > 0.9999);
  const { data } = (await packed.json()) as { data: { embedding: string }[] };
  const bytes = Buffer.from(data[0]!.embedding, 'base64');
  assert.deepEqual(
    one.map(Math.fround),
    Array.from({ length: 512 }, (_, index) => bytes.readFloatLE(index * 4)),
  );
});

test('documents are ranked by what they say', async () => {
  const documents = [
    'The weather is nice today.',
    'To reset your password, open the account settings.',
    'Our office is closed on Sundays.',
    { text: 'I forgot my login credentials, how do I get a new password?' },
  ];
  const response = await gateway.post('/rerank', {
    model: 'local/use-lite',
    query: 'How can I change my password?',
    documents,
    top_n: 2,
  });
  assert.equal(response.status, 200);
  const { results } = (await response.json()) as { results: { index: number; relevance_score: number }[] };
  assert.deepEqual(results.map(({ index }) => index).toSorted(), [1, 3]);
  assert.ok(results[0]!.relevance_score > results[1]!.relevance_score);
});

test('the gateway answers other requests while the model works', async () => {
  const long = embed(LONG);
  const echoes = [];
  for (let round = 0; round < 20; round += 1) {
    const body = { model: 'simulated/echo', messages: [{ role: 'user', content: 'hi' }] };
    echoes.push((await gateway.post('/chat/completions', body)).status);
  }
  let done = false;
  void long.then(() => {
    done = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(done, false, 'the vectors were there before the echoes, so nothing was shown');
  assert.deepEqual(new Set(echoes), new Set([200]));
  await long;
});

test('what the model cannot take is refused in words', async () => {
  const cases: [unknown, number, RegExp][] = [
    ['', 400, /does not accept empty texts/],
    ['x'.repeat(10_000), 400, /longer than 8192 characters/],
    ['x y '.repeat(2040), 400, /context length/],
    [[1, 2], 400, /does not accept token ids/],
  ];
  for (const [input, status, message] of cases) {
    const response = await gateway.post('/embeddings', { model: 'local/use-lite', input });
    assert.equal(response.status, status);
    assert.match(await response.text(), message);
  }
  const sized = await gateway.post('/embeddings', { model: 'local/use-lite', input: 'a', dimensions: 64 });
  assert.match(await sized.text(), /dimensions/);
});

test('a client that leaves takes its texts out of the line', async () => {
  const leave = new AbortController();
  const asked = fetch(`${gateway.api}/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'local/use-lite', input: LONG }),
    signal: leave.signal,
  });
  const next = embed('still here');
  setImmediate(() => leave.abort());
  await assert.rejects(asked);
  assert.equal((await next).data.length, 1);
});
