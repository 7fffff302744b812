/** `POST /messages/count_tokens` of models in the clouds, each counted by the cloud's own operation. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';

const vertex = { kind: 'vertex', project: 'cloud-project', location: 'us-east5', api_key: undefined };
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      claude: { ...vertex, model: { upstream_id: 'claude-sonnet-4-5@20250929' } },
      gemini: { ...vertex, model: { upstream_id: 'google/gemini-2.5-pro' } },
      tuned: { ...vertex, model: { upstream_id: 'endpoints/1234567890' } },
      open: { ...vertex, model: { upstream_id: 'meta/llama-4-maverick' } },
      bedrock: { kind: 'bedrock', model: { upstream_id: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0' } },
      nova: { kind: 'bedrock', model: { upstream_id: 'amazon.nova-pro-v1:0' } },
    },
  },
);

const conversation = {
  system: 'be brief',
  messages: [{ role: 'user', content: 'hello world' }],
  tools: [{ name: 'look', description: 'Looks', input_schema: { type: 'object', properties: {} } }],
};

async function count(name: string, more: object = {}) {
  const response = await gateway.post('/messages/count_tokens', { model: `test/${name}`, ...conversation, ...more });
  return { status: response.status, body: (await response.json()) as { input_tokens: number; estimated?: true } };
}

const asked = (name: string) => gateway.upstream.requests(name).at(-1)!;
const PARENT = '/projects/cloud-project/locations/us-east5';

test('Claude on Vertex is counted by the operation next to it, which takes the model in the body', async () => {
  gateway.upstream.script('claude', wholeOf({ input_tokens: 21 }));
  assert.deepEqual((await count('claude')).body, { input_tokens: 21 });
  const { path, json } = asked('claude');
  assert.equal(path, `${PARENT}/publishers/anthropic/models/count-tokens:rawPredict`);
  assert.deepEqual(json, {
    anthropic_version: 'vertex-2023-10-16',
    model: 'claude-sonnet-4-5@20250929',
    ...conversation,
  });
});

test('Gemini on Vertex is counted with its instructions and tools, a tuned model where it is asked', async () => {
  for (const [name, where] of [
    ['gemini', 'publishers/google/models/gemini-2.5-pro'],
    ['tuned', 'endpoints/1234567890'],
  ] as const) {
    gateway.upstream.script(name, wholeOf({ totalTokens: 33, totalBillableCharacters: 90 }));
    assert.deepEqual((await count(name)).body, { input_tokens: 33 });
    const { path, json } = asked(name);
    assert.equal(path, `${PARENT}/${where}:countTokens`);
    const body = json as Record<string, unknown>;
    assert.deepEqual(Object.keys(body).sort(), ['contents', 'systemInstruction', 'tools']);
  }
});

test('Claude on Bedrock is counted as the model itself, by a body that it could be asked with', async () => {
  gateway.upstream.script('bedrock', wholeOf({ inputTokens: 44 }));
  const thinking = { type: 'enabled', budget_tokens: 2048 };
  assert.deepEqual((await count('bedrock', { thinking })).body, { input_tokens: 44 });
  const { path, json } = asked('bedrock');
  assert.equal(path, '/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/count-tokens');
  const { body } = (json as { input: { invokeModel: { body: string } } }).input.invokeModel;
  assert.deepEqual(JSON.parse(Buffer.from(body, 'base64').toString()), {
    anthropic_version: 'bedrock-2023-05-31',
    max_tokens: 2049,
    ...conversation,
    thinking,
  });
});

test('a model that the cloud cannot count is estimated; errors in the conversation are reported', async () => {
  const refusal = (message: string) => ({
    ...wholeOf({ message }),
    status: 400,
    headers: { 'content-type': 'application/json', 'x-amzn-errortype': 'ValidationException' },
  });
  gateway.upstream.script('bedrock', refusal("The provided model doesn't support counting tokens."));
  assert.equal((await count('bedrock')).body.estimated, true);
  gateway.upstream.script('bedrock', refusal('messages: roles must alternate'));
  const refused = await count('bedrock');
  assert.equal(refused.status, 400);
  assert.match(JSON.stringify(refused.body), /roles must alternate/);
});

test('models without the operation, and media that would have to be fetched, are estimated without a call', async () => {
  const image = { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } };
  const before = (name: string) => gateway.upstream.requests(name).length;
  const counts = { claude: before('claude'), open: before('open'), nova: before('nova') };
  assert.equal((await count('open')).body.estimated, true);
  assert.equal((await count('nova')).body.estimated, true);
  assert.equal((await count('claude', { messages: [{ role: 'user', content: [image] }] })).body.estimated, true);
  assert.deepEqual({ claude: before('claude'), open: before('open'), nova: before('nova') }, counts);
});
