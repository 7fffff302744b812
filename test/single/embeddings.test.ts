/** `POST /embeddings` through a whole gateway: the public format, every family that is asked for vectors, and what it costs. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

const EMBEDDING_MODEL = {
  output_modalities: ['embeddings'],
  max_completion_tokens: null,
  supported_parameters: [],
  pricing: { prompt: '0.0000001', completion: '0' },
};
const provider = (kind: string, more: Record<string, unknown> = {}) => {
  const { max_completion_tokens: _none, ...model } = EMBEDDING_MODEL;
  return { kind, model: { ...model, ...more } };
};

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      openai: provider('openai'),
      spare: provider('chat', { id: 'test/openai' }),
      mistral: provider('mistral'),
      vllm: provider('vllm'),
      voyage: provider('voyage'),
      jina: provider('jina'),
      perplexity: provider('perplexity'),
      alibaba: provider('alibaba'),
      openrouter: provider('openrouter'),
      together: provider('together'),
      free: provider('openai', { pricing: undefined }),
      talk: { kind: 'chat' },
    },
  },
);

interface Item {
  object: string;
  index: number;
  embedding: number[] | string;
}
interface Answer {
  id: string;
  object: string;
  model: string;
  data: Item[];
  usage: { prompt_tokens: number; total_tokens: number; cost: number; prompt_tokens_details?: unknown };
}

const json = { 'content-type': 'application/json' };

/** A reply in the public format; vectors of the index and a half. */
function replyOf(count: number, more: Record<string, unknown> = {}, base64 = false): string {
  const data = Array.from({ length: count }, (_, index) => ({
    object: 'embedding',
    index,
    embedding: base64 ? base64Of([index, 0.5]) : [index, 0.5],
  }));
  return JSON.stringify({
    object: 'list',
    data,
    model: 'theirs',
    usage: { prompt_tokens: 7, total_tokens: 7 },
    ...more,
  });
}

function base64Of(numbers: number[]): string {
  const bytes = Buffer.alloc(numbers.length * 4);
  numbers.forEach((number, index) => void bytes.writeFloatLE(number, index * 4));
  return bytes.toString('base64');
}

function script(key: string, ...bodies: (string | { status: number; body: string })[]): void {
  gateway.upstream.script(
    key,
    bodies.map((body) => {
      const { status, body: text } = typeof body === 'string' ? { status: 200, body } : body;
      return { status, headers: json, chunks: [text] };
    }),
  );
}

async function ask(body: Record<string, unknown>): Promise<Answer> {
  const response = await gateway.post('/embeddings', body);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text) as Answer;
}

async function refusal(body: unknown): Promise<{ status: number; message: string; type: string }> {
  const response = await gateway.post('/embeddings', body);
  const { error } = (await response.json()) as { error: { message: string; metadata: { error_type: string } } };
  return { status: response.status, message: error.message, type: error.metadata.error_type };
}

/** It is entered before the answer's last byte. */
async function rowOf(id: string): Promise<Record<string, unknown>> {
  const response = await gateway.get(`/generation?id=${id}`);
  assert.equal(response.status, 200);
  return ((await response.json()) as { data: Record<string, unknown> }).data;
}

function sentTo(key: string): { path: string; json: Record<string, unknown>; headers: Record<string, unknown> } {
  const { path, json: body, headers } = gateway.upstream.requests(key).at(-1)!;
  return { path, json: body as Record<string, unknown>, headers };
}

test('an upstream of the public format is asked in the client’s bytes and answers in its own, but for our members', async () => {
  script('openai', replyOf(2, { service: { kept: 12345678901234567890n.toString() } }));
  const body = `{"model":"test/openai","input":["a","b"],"user":"u-1","session_id":"s","trace":{"trace_id":"t"},"provider":{"only":["openai"]},"unknown":1.0}`;
  const response = await gateway.post('/embeddings', body);
  const answer = (await response.json()) as Answer & { service: unknown };
  assert.deepEqual(answer.data, [
    { object: 'embedding', index: 0, embedding: [0, 0.5] },
    { object: 'embedding', index: 1, embedding: [1, 0.5] },
  ]);
  assert.deepEqual(answer.service, { kept: '12345678901234567890' });
  assert.equal(answer.model, 'test/openai');
  assert.equal(answer.id, response.headers.get('x-generation-id'));
  assert.deepEqual([answer.usage.prompt_tokens, answer.usage.total_tokens], [7, 7]);
  assert.equal(answer.usage.cost, 7e-7);
  const { path, json: sent, headers } = sentTo('openai');
  assert.equal(path, '/embeddings');
  assert.match(String(headers['authorization']), /^Bearer /);
  assert.match(String(sent['user']), /^[0-9a-f]{64}$/);
  assert.deepEqual(Object.keys(sent).toSorted(), ['input', 'model', 'unknown', 'user']);
  assert.equal(sent['model'], 'upstream-openai');
});

test('the row of an embedding says what it was, what it used and what it cost', async () => {
  script('openai', replyOf(1, { id: 'embd-1' }));
  const { id } = await ask({ model: 'test/openai', input: 'a', user: 'me', session_id: 'group' });
  const row = await rowOf(id);
  assert.equal(row['api_type'], 'embeddings');
  assert.deepEqual([row['tokens_prompt'], row['tokens_completion']], [7, 0]);
  assert.deepEqual([row['total_cost'], row['session_id'], row['external_user']], [7e-7, 'group', 'me']);
  assert.deepEqual([row['upstream_id'], row['streamed'], row['cancelled']], ['embd-1', false, false]);
});

test('a client gets the encoding that it asked for, whatever the upstream gives', async () => {
  script('openai', replyOf(2));
  const asked = await ask({ model: 'test/openai', input: ['a', 'b'], encoding_format: 'base64' });
  assert.deepEqual(
    asked.data.map(({ embedding }) => embedding),
    [base64Of([0, 0.5]), base64Of([1, 0.5])],
  );
  assert.equal(sentTo('openai').json['encoding_format'], 'base64');
  script('openai', replyOf(2, {}, true));
  const plain = await ask({ model: 'test/openai', input: ['a', 'b'] });
  assert.deepEqual(
    plain.data.map(({ embedding }) => embedding),
    [
      [0, 0.5],
      [1, 0.5],
    ],
  );
  script('vllm', replyOf(1));
  const converted = await ask({ model: 'test/vllm', input: 'a', encoding_format: 'base64' });
  assert.equal(converted.data[0]!.embedding, base64Of([0, 0.5]));
  assert.equal('encoding_format' in sentTo('vllm').json, false);
});

test('vectors are in the order of the inputs, whatever the order of the upstream', async () => {
  script(
    'openai',
    '{"data":[{"index":1,"embedding":[1,1]},{"embedding":[0,1e-3],"index":0}],"usage":{"total_tokens":3}}',
  );
  const { data, usage, object } = await ask({ model: 'test/openai', input: ['a', 'b'] });
  assert.equal(object, 'list');
  assert.deepEqual(data, [
    { object: 'embedding', index: 0, embedding: [0, 0.001] },
    { object: 'embedding', index: 1, embedding: [1, 1] },
  ]);
  assert.equal(usage.prompt_tokens, 3);
});

test('token ids, of one input and of several, reach the upstream as they are', async () => {
  script('openai', replyOf(1), replyOf(2));
  await ask({ model: 'test/openai', input: [1, 2, 3], dimensions: 2 });
  assert.deepEqual(sentTo('openai').json['input'], [1, 2, 3]);
  assert.equal(sentTo('openai').json['dimensions'], 2);
  await ask({ model: 'test/openai', input: [[1], [2, 3]] });
  assert.deepEqual(sentTo('openai').json['input'], [[1], [2, 3]]);
});

test('an upstream that answers something else than one vector for each input is replaced by the next', async () => {
  const bad = [
    replyOf(1),
    replyOf(3),
    '{"object":"list","data":[]}',
    '{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}',
    '{"data":[{"index":0,"embedding":[1,null]},{"index":1,"embedding":[1,2]}]}',
    '{"data":[{"index":0,"embedding":[NaN]},{"index":1,"embedding":[1]}]}',
    '{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[1]}]}',
    replyOf(2).slice(0, -5),
    'no json',
    '{"error":{"message":"busy","code":503}}',
  ];
  for (const body of bad) {
    gateway.clock.jump(3_600_000);
    script('openai', body);
    script('spare', replyOf(2, { usage: { prompt_tokens: 2, total_tokens: 2 } }));
    const answer = await ask({ model: 'test/openai', input: ['a', 'b'] });
    assert.equal(answer.data.length, 2, body);
    const row = await rowOf(answer.id);
    assert.equal(row['provider_name'], 'Provider spare', body);
    assert.equal((row['provider_responses'] as unknown[]).length, 2, body);
  }
});

test('a rate limit moves on to the next endpoint, and without one it is the client’s with its wait', async () => {
  gateway.clock.jump(3_600_000);
  script('openai', { status: 429, body: '{"error":{"message":"slow down"}}' });
  script('spare', replyOf(1));
  assert.equal((await rowOf((await ask({ model: 'test/openai', input: 'a' })).id))['provider_name'], 'Provider spare');
  gateway.upstream.script('mistral', [
    { status: 429, headers: { ...json, 'retry-after': '7' }, chunks: ['{"message":"slow down"}'] },
  ]);
  const response = await gateway.post('/embeddings', { model: 'test/mistral', input: 'a' });
  assert.equal(response.status, 429);
  assert.equal(response.headers.get('retry-after'), '7');
  assert.ok(response.headers.get('x-generation-id'));
});

test('what an upstream does not report is estimated and marked', async () => {
  gateway.clock.jump(3_600_000);
  script('openai', replyOf(1, { usage: undefined }));
  const input = 'x'.repeat(4000);
  const answer = await ask({ model: 'test/openai', input });
  assert.ok(answer.usage.prompt_tokens >= 1000 && answer.usage.prompt_tokens < 1100, JSON.stringify(answer.usage));
  assert.ok(answer.usage.cost > 0);
});

test('each service is asked in its own words', async () => {
  const texts = { input: ['a', 'b'], dimensions: 256, input_type: 'search_query' };
  script('mistral', replyOf(2));
  await ask({ model: 'test/mistral', ...texts });
  assert.deepEqual(sentTo('mistral').json, { model: 'upstream-mistral', input: ['a', 'b'], output_dimension: 256 });
  script('voyage', replyOf(2, { usage: { total_tokens: 9 } }));
  const voyage = await ask({ model: 'test/voyage', ...texts, encoding_format: 'base64' });
  assert.equal(voyage.usage.prompt_tokens, 9);
  assert.deepEqual(sentTo('voyage').json, {
    model: 'upstream-voyage',
    input: ['a', 'b'],
    output_dimension: 256,
    input_type: 'query',
    encoding_format: 'base64',
  });
  script('jina', replyOf(2));
  await ask({ model: 'test/jina', ...texts, encoding_format: 'base64' });
  assert.deepEqual(sentTo('jina').json, {
    model: 'upstream-jina',
    input: ['a', 'b'],
    dimensions: 256,
    embedding_type: 'base64',
    task: 'retrieval.query',
  });
  script('openrouter', replyOf(2));
  await ask({ model: 'test/openrouter', ...texts });
  assert.equal(sentTo('openrouter').json['input_type'], 'search_query');
  script('together', replyOf(2));
  await ask({ model: 'test/together', input: ['a', 'b'], encoding_format: 'float' });
  assert.deepEqual(sentTo('together').json, { model: 'upstream-together', input: ['a', 'b'] });
});

test('inputs with images go where they can be taken, each in the words of its service', async () => {
  const image = 'data:image/png;base64,AAAA';
  const input = [
    {
      content: [
        { type: 'text', text: 'logo' },
        { type: 'image_url', image_url: { url: image } },
      ],
    },
  ];
  script('voyage', replyOf(1));
  await ask({ model: 'test/voyage', input, input_type: 'document' });
  const { path, json: sent } = sentTo('voyage');
  assert.equal(path, '/multimodalembeddings');
  assert.deepEqual(sent, {
    model: 'upstream-voyage',
    inputs: [
      {
        content: [
          { type: 'text', text: 'logo' },
          { type: 'image_base64', image_base64: image },
        ],
      },
    ],
    input_type: 'document',
  });
  script('jina', replyOf(1));
  await ask({ model: 'test/jina', input: [{ content: [{ type: 'image_url', image_url: { url: image } }] }] });
  assert.deepEqual(sentTo('jina').json['input'], [{ image: 'AAAA' }]);
  script('openrouter', replyOf(1));
  await ask({ model: 'test/openrouter', input });
  assert.deepEqual(sentTo('openrouter').json['input'], input);
  const refused = await refusal({ model: 'test/mistral', input });
  assert.equal(refused.status, 400);
  assert.match(refused.message, /no endpoint can carry this request: input/);
});

test('a list longer than a service takes goes out in batches, and the answer is one', async () => {
  const input = Array.from({ length: 23 }, (_, index) => `text ${index}`);
  script('alibaba', replyOf(10), replyOf(10), replyOf(3));
  const before = gateway.upstream.requests('alibaba').length;
  const { data, usage } = await ask({ model: 'test/alibaba', input });
  assert.deepEqual(
    data.map(({ index, embedding }) => [index, (embedding as number[])[0]]),
    input.map((_, index) => [index, index % 10]),
  );
  assert.equal(usage.prompt_tokens, 21);
  const sent = gateway.upstream.requests('alibaba').slice(before);
  assert.deepEqual(
    sent.flatMap(({ json: body }) => (body as { input: string[] }).input),
    input,
  );
});

test('of a list that breaks off in its second batch the first one is paid for', async () => {
  const input = Array.from({ length: 20 }, () => 'text');
  script('alibaba', replyOf(10), { status: 400, body: '{"error":{"message":"no"}}' });
  const response = await gateway.post('/embeddings', { model: 'test/alibaba', input });
  assert.equal(response.status, 400);
  const row = await rowOf(response.headers.get('x-generation-id')!);
  assert.deepEqual([row['tokens_prompt'], row['total_cost']], [7, 7e-7]);
});

test('vectors in int8 become numbers between -1 and 1', async () => {
  const bytes = Buffer.from(new Int8Array([127, -127, 0, -128]).buffer).toString('base64');
  script('perplexity', JSON.stringify({ data: [{ index: 0, embedding: bytes }], usage: { prompt_tokens: 1 } }));
  const { data } = await ask({ model: 'test/perplexity', input: 'a' });
  assert.deepEqual(data[0]!.embedding, [1, -1, 0, -1]);
  assert.equal(sentTo('perplexity').path, '/v1/embeddings');
});

test('bad requests are refused with the path of the fault', async () => {
  const model = 'test/openai';
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ input: 'a' }, /model/],
    [{ model }, /input/],
    [{ model, input: [] }, /input must not be empty/],
    [{ model, input: 5 }, /input/],
    [{ model, input: ['a', 1] }, /input\[1\]/],
    [{ model, input: [1, 'a'] }, /input\[1\]/],
    [{ model, input: [1.5] }, /input\[0\]/],
    [{ model, input: [[]] }, /input\[0\]/],
    [{ model, input: [[1], [-1]] }, /input\[1\]\[0\]/],
    [{ model, input: [null] }, /input\[0\]/],
    [{ model, input: [{}] }, /input\[0\]\.content/],
    [{ model, input: [{ content: [{ type: 'text' }] }] }, /input\[0\]\.content\[0\]\.text/],
    [{ model, input: [{ content: [{ type: 'smell' }] }] }, /input\[0\]\.content\[0\]\.type/],
    [{ model, input: [{ content: [{ type: 'image_url', image_url: {} }] }] }, /content\[0\]\.image_url\.url/],
    [{ model, input: Array.from({ length: 2049 }, () => 'a') }, /at most 2048/],
    [{ model, input: 'a', dimensions: 0 }, /dimensions/],
    [{ model, input: 'a', encoding_format: 'int8' }, /encoding_format/],
    [{ model, input: 'a', user: 'u'.repeat(257) }, /user/],
    [{ model, input: 'a', session_id: 's'.repeat(257) }, /session_id/],
    [{ model, input: 'a', provider: { only: 'x' } }, /provider\.only/],
  ];
  for (const [body, message] of cases) {
    const { status, message: told, type } = await refusal(body);
    assert.equal(status, 400, JSON.stringify(body).slice(0, 100));
    assert.match(told, message);
    assert.equal(type, 'invalid_request');
  }
});

test('a model of another kind is refused by both operations, with the reason in words', async () => {
  const vectors = await gateway.post('/embeddings', { model: 'test/talk', input: 'a', provider: { ignore: ['x'] } });
  // The catalog does not know what this model writes, so the upstream is asked.
  assert.notEqual(vectors.status, 400);
  const talk = await gateway.post('/chat/completions', {
    model: 'test/openai',
    messages: [{ role: 'user', content: 'hi' }],
  });
  assert.equal(talk.status, 400);
  const { error } = (await talk.json()) as { error: { availability: { code: string } } };
  assert.equal(error.availability.code, 'wrong_endpoint');
});

test('a client that leaves ends the upstream call, and its row is entered with an estimate', async () => {
  gateway.clock.jump(3_600_000);
  gateway.upstream.script('openai', [{ end: 'stall-before-headers' }]);
  const count = gateway.upstream.requests('openai').length;
  const leave = new AbortController();
  const asked = fetch(`${gateway.api}/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${(await keyOf({})).key}`, ...json },
    body: JSON.stringify({ model: 'test/openai', input: 'x'.repeat(400), user: 'gone' }),
    signal: leave.signal,
  });
  const request = await gateway.upstream.request('openai', count + 1);
  leave.abort();
  await assert.rejects(asked);
  await until(() => request.closedEarlyAt, 'the upstream call to end');
});

async function keyOf(body: Record<string, unknown>): Promise<{ key: string; hash: string }> {
  const response = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, ...json },
    body: JSON.stringify({ name: 'limited', ...body }),
  });
  const { key, data } = (await response.json()) as { key: string; data: { hash: string } };
  return { key, hash: data.hash };
}

test('a budget holds: 402 before anything is sent, and a model without a price is refused to a limited key', async () => {
  gateway.clock.jump(3_600_000);
  const { key, hash } = await keyOf({ limit: 0.00001 });
  const post = (body: unknown) => gateway.post('/embeddings', body, { authorization: `Bearer ${key}` });
  script('openai', replyOf(1));
  const count = gateway.upstream.requests('openai').length;
  const small = await post({ model: 'test/openai', input: 'a' });
  assert.equal(small.status, 200, await small.text());
  const large = await post({ model: 'test/openai', input: 'x'.repeat(2000) });
  assert.equal(large.status, 402);
  assert.equal(gateway.upstream.requests('openai').length, count + 1);
  const unpriced = await post({ model: 'test/free', input: 'a' });
  assert.equal(unpriced.status, 403);
  const usage = await fetch(`${gateway.api}/keys/${hash}`, { headers: { authorization: `Bearer ${MANAGEMENT_KEY}` } });
  assert.equal(((await usage.json()) as { data: { usage: number } }).data.usage, 7e-7);
});

test('GET /embeddings/models lists the models that write vectors, and no others', async () => {
  const response = await gateway.get('/embeddings/models?limit=3');
  const { data } = (await response.json()) as { data: { id: string; architecture: { output_modalities: string[] } }[] };
  assert.equal(data.length, 3);
  for (const { architecture } of data) assert.deepEqual(architecture.output_modalities, ['embeddings']);
});
