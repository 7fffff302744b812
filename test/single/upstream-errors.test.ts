/** Errors of vendors in embeddings and rerank: the next endpoint, the error that the client gets, and the charge. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';

const { max_completion_tokens: _none, ...vectors } = {
  output_modalities: ['embeddings'],
  max_completion_tokens: null,
  supported_parameters: [],
  pricing: { prompt: '0.000001', completion: '0' },
};
const ranks = { ...vectors, output_modalities: ['rerank'] };

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      openai: { kind: 'openai', model: vectors },
      google: { kind: 'google', model: vectors },
      cohere: { kind: 'cohere', model: vectors },
      ranker: { kind: 'cohere', model: ranks },
      spare: {
        kind: 'chat',
        models: ['openai', 'google', 'cohere'].map((name) => ({ ...vectors, id: `test/${name}` })),
        model: undefined,
      },
      other: { kind: 'chat', model: { ...ranks, id: 'test/ranker' } },
      talk: { kind: 'chat' },
    },
  },
);

const json = { 'content-type': 'application/json' };
const GOOD = JSON.stringify({
  data: [{ object: 'embedding', index: 0, embedding: [0.5, 1] }],
  usage: { prompt_tokens: 7, total_tokens: 7 },
});
const RANKED = JSON.stringify({ results: [{ index: 0, relevance_score: 0.5 }] });

interface Told {
  status: number;
  message: string;
  /** The spare endpoint was asked. */
  fellBack: boolean;
  cost: number;
}

/** Asks the endpoint that fails, and the spare one unless only the first is wanted. */
async function told(name: string, status: number, body: unknown, alone = false): Promise<Told> {
  const isRank = name === 'ranker';
  const spare = isRank ? 'other' : 'spare';
  gateway.upstream.script(name, [{ status, headers: json, chunks: [JSON.stringify(body)] }]);
  gateway.upstream.script(spare, [{ headers: json, chunks: [isRank ? RANKED : GOOD] }]);
  const before = gateway.upstream.requests(spare).length;
  const wanted = isRank ? { query: 'q', documents: ['a'] } : { input: 'hello world' };
  const response = await gateway.post(isRank ? '/rerank' : '/embeddings', {
    ...wanted,
    model: `test/${name}`,
    provider: alone ? { only: [name] } : { order: [name, spare] },
  });
  const reply = (await response.json()) as { error?: { message: string } };
  const row = await gateway.get(`/generation?id=${response.headers.get('x-generation-id')}`);
  const { data } = (await row.json()) as { data: { total_cost: number } };
  gateway.clock.jump(600_000);
  return {
    status: response.status,
    message: reply.error?.message ?? '',
    fellBack: gateway.upstream.requests(spare).length > before,
    cost: data.total_cost,
  };
}

const google = (code: number, status: string, message: string) => ({ error: { code, status, message } });

for (const [what, name, status, body] of [
  ['a failed generation (TGI)', 'openai', 424, { error: 'Request failed', error_type: 'generation' }],
  ['a request that a proxy closed', 'openai', 499, { message: 'closed' }],
  ['a retired model', 'openai', 410, { detail: 'The model has reached its end of life' }],
  ['a server without the operation', 'openai', 405, { detail: 'Method Not Allowed' }],
  [
    'a location that Google refuses',
    'google',
    400,
    google(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'),
  ],
  [
    'an expired key of Google',
    'google',
    400,
    google(400, 'INVALID_ARGUMENT', 'API key expired. Please renew the API key.'),
  ],
  ['a call that Google cancelled', 'google', 499, google(499, 'CANCELLED', 'The operation was cancelled.')],
  ['a call that Cohere cancelled', 'cohere', 499, { message: 'request cancelled' }],
  ['a spent month at Cohere', 'ranker', 429, { message: 'You are past the per month request limit' }],
] as const) {
  test(`${what} is no fault of the client: the next endpoint is asked`, async () => {
    const seen = await told(name, status, body);
    assert.deepEqual([seen.status, seen.fellBack], [200, true], seen.message);
    const alone = await told(name, status, body, true);
    assert.notEqual(alone.status, 400);
    assert.doesNotMatch(alone.message, /renew|past the per month/);
    assert.equal(alone.cost, 0);
  });
}

test('content that Cohere blocks is the client’s matter at every endpoint', async () => {
  for (const name of ['cohere', 'ranker']) {
    const seen = await told(name, 498, { message: 'blocked by our content policy' });
    assert.deepEqual([seen.status, seen.fellBack, seen.cost], [400, false, 0], name);
  }
});

test('a refusal inside a good status costs nothing', async () => {
  for (const error of [
    { message: 'Rate limit reached', type: 'rate_limit_exceeded' },
    { message: 'Insufficient balance', code: 'insufficient_quota' },
    { message: 'Incorrect API key provided', code: 'invalid_api_key' },
    { message: 'The server is overloaded', type: 'overloaded_error' },
  ]) {
    const seen = await told('openai', 200, { error }, true);
    assert.ok(seen.status >= 429, seen.message);
    assert.equal(seen.cost, 0, error.message);
  }
});

test('usage that comes with an error, or with vectors that are not usable, is charged as reported', async () => {
  const usage = { prompt_tokens: 5, total_tokens: 5 };
  assert.equal((await told('openai', 200, { error: { message: 'boom' }, usage }, true)).cost, 5e-6);
  assert.equal((await told('openai', 200, { error: { message: 'boom', code: 502 }, usage }, true)).cost, 5e-6);
  assert.equal((await told('openai', 200, { data: [], usage }, true)).cost, 5e-6);
  const billed = { results: [{ index: 9, relevance_score: 1 }], usage: { total_tokens: 4 } };
  assert.equal((await told('ranker', 200, billed, true)).cost, 4e-6);
});

test('a whole answer of chat is charged for what it reports with its error', async () => {
  const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
  gateway.upstream.script('talk', [
    { headers: json, chunks: [JSON.stringify({ choices: [], error: { message: 'boom' }, usage })] },
  ]);
  const response = await gateway.post('/chat/completions', {
    model: 'test/talk',
    messages: [{ role: 'user', content: 'hello' }],
  });
  assert.equal(response.status, 502);
  const row = await gateway.get(`/generation?id=${response.headers.get('x-generation-id')}`);
  const { data } = (await row.json()) as { data: { total_cost: number } };
  assert.equal(data.total_cost, 5 * 3e-6 + 2 * 15e-6);
});

test('a large image without reported usage is charged like one of usual size, not by its bytes', async () => {
  const url = `data:image/png;base64,iVBORw0KGgo${'A'.repeat(1_000_000)}`;
  const part = { type: 'image_url', image_url: { url } };
  const costOf = async (route: string, name: string, body: unknown, answer: unknown) => {
    gateway.upstream.script(name, [{ headers: json, chunks: [JSON.stringify(answer)] }]);
    const response = await gateway.post(route, { model: `test/${name}`, ...(body as object) });
    assert.equal(response.status, 200);
    const row = await gateway.get(`/generation?id=${response.headers.get('x-generation-id')}`);
    return ((await row.json()) as { data: { total_cost: number } }).data.total_cost;
  };
  const input = { input: [{ content: [part] }], provider: { only: ['google'] } };
  const vector = await costOf('/embeddings', 'google', input, { embeddings: [{ values: [1, 2] }] });
  assert.ok(vector > 1_600e-6 && vector < 1_800e-6, String(vector));
  const messages = [{ role: 'user', content: [part] }];
  const choices = [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }];
  const spoken = await costOf('/chat/completions', 'talk', { messages }, { choices });
  assert.ok(spoken > 1_600 * 3e-6 && spoken < 1_800 * 3e-6, String(spoken));
});

test('an impossible token count is ignored, and the tokens are estimated', async () => {
  const data = [{ object: 'embedding', index: 0, embedding: [1, 2] }];
  for (const count of [-5, 1e300, 'many']) {
    const seen = await told('openai', 200, { data, usage: { prompt_tokens: count, total_tokens: count } }, true);
    assert.deepEqual([seen.status, seen.cost > 0], [200, true], String(count));
  }
});
