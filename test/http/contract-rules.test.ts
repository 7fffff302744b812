/** Single rules of the public contract that no other test of the whole holds. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { CHAT_END, chatChunk, chatStream, chatUsage, chatWhole } from '../../src/testing/upstream/chat-upstream.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: {},
      other: {},
      ranks: { kind: 'cohere', model: { output_modalities: ['rerank'] } },
      pictures: { kind: 'openai', model: { output_modalities: ['image'] } },
    },
  },
);
const { upstream } = gateway;
const MESSAGES = [{ role: 'user', content: 'hi' }];
// biome-ignore lint/suspicious/noExplicitAny: answers are read like clients read them, without types.
type Json = any;

async function post(path: string, body: Json): Promise<{ status: number; body: Json; headers: Headers }> {
  const reply = await gateway.post(path, body);
  return { status: reply.status, body: await reply.json(), headers: reply.headers };
}

async function refused(path: string, body: Json, problem: RegExp): Promise<Json> {
  const reply = await post(path, body);
  assert.equal(reply.status, 400, JSON.stringify(reply.body));
  assert.match(reply.body.error.message, problem);
  return reply.body.error;
}

test('a fallback of the messages format has a model and no other member', async () => {
  const body = { model: 'test/chat', max_tokens: 10, messages: MESSAGES };
  await refused('/messages', { ...body, fallbacks: [{ model: 'test/other', max_tokens: 5 }] }, /fallbacks\[0\]/);
  upstream.script('chat', chatWhole('hello'));
  assert.equal((await post('/messages', { ...body, fallbacks: [{ model: 'test/other' }] })).status, 200);
});

test('stop conditions are at least one, and prompt caching has one mode, in every format that has them', async () => {
  const formats: [string, Json][] = [
    ['/chat/completions', { messages: MESSAGES }],
    ['/messages', { messages: MESSAGES, max_tokens: 10 }],
    ['/responses', { input: 'hi' }],
  ];
  for (const [path, format] of formats) {
    const body = { model: 'test/chat', ...format };
    await refused(path, { ...body, stop_server_tools_when: [] }, /stop_server_tools_when/);
    if (path === '/messages') continue;
    for (const options of [{ mode: 'implicit' }, { mode: 7 }, {}]) {
      await refused(path, { ...body, prompt_cache_options: options }, /prompt_cache_options/);
    }
    upstream.script('chat', chatWhole('hello'));
    assert.equal((await post(path, { ...body, prompt_cache_options: { mode: 'explicit', ttl: '1h' } })).status, 200);
  }
});

test('a stream that arrives at once has all four timings, the upstream’s end after the content', async () => {
  const text = [chatChunk({ role: 'assistant', content: 'hello' }), chatChunk({}, 'stop'), chatUsage(), CHAT_END].join(
    '',
  );
  for (const answer of [chatWhole('hello'), { headers: { 'content-type': 'text/event-stream' }, chunks: [text] }]) {
    upstream.script('chat', answer);
    const reply = await gateway.post('/chat/completions', {
      ...{ model: 'test/chat', messages: MESSAGES, stream: true },
      debug: { echo_upstream_body: true },
    });
    const stream = await reply.text();
    const events = [...stream.matchAll(/"event":"(\w+)"/g)].map(([, event]) => event);
    assert.deepEqual(events, [
      'adapter_request',
      'upstream_headers_received',
      'first_token_received',
      'upstream_body_ended',
    ]);
    const [first, content, ended, end] = ['first_token_received', 'hello', 'upstream_body_ended', '[DONE]'].map(
      (word) => stream.indexOf(word),
    );
    assert.ok(first! < content! && content! < ended! && ended! < end!, stream);
  }
});

test('models in order of popularity are those whose tokens were used, the most first', async () => {
  upstream.script('other', chatStream('hello', [], chatUsage(5_000, 5_000)));
  await (await gateway.post('/chat/completions', { model: 'test/other', messages: MESSAGES, stream: true })).text();
  for (const sort of ['most-popular', 'top-weekly']) {
    const { data } = (await (await gateway.get(`/models?sort=${sort}`)).json()) as Json;
    assert.deepEqual(
      data.slice(0, 2).map(({ id }: Json) => id),
      ['test/other', 'test/chat'],
      sort,
    );
  }
  for (const filter of ['category=programming', 'distillable=true']) {
    const reply = (await (await gateway.get(`/models?${filter}`)).json()) as Json;
    assert.deepEqual([reply.data, reply.total_count], [[], 0], filter);
  }
});

test('a silent upstream is 524 for operations that answer in one piece, and 504 elsewhere', async () => {
  const silent = { gate: 'never' };
  const asks: [string, string, Json, number][] = [
    ['ranks', '/rerank', { model: 'test/ranks', query: 'q', documents: ['a'] }, 524],
    ['pictures', '/images', { model: 'test/pictures', prompt: 'a house' }, 524],
    ['chat', '/chat/completions', { model: 'test/chat', messages: MESSAGES }, 504],
  ];
  for (const [key, path, body, status] of asks) {
    const before = upstream.requests(key).length;
    upstream.script(key, { headers: { 'content-type': 'application/json' }, chunks: [silent] });
    const pending = post(path, body);
    await upstream.request(key, before + 1);
    gateway.clock.jump(3_600_000);
    const reply = await pending;
    assert.deepEqual([reply.status, reply.body.error.code], [status, status], JSON.stringify(reply.body));
  }
  upstream.open('never');
});

test('a 404 below interns and vaults has no metadata, of other paths it has its type', async () => {
  for (const path of ['/interns/x/unknown', '/vault/unknown']) {
    const reply = await gateway.get(path);
    const { error } = (await reply.json()) as Json;
    assert.deepEqual([reply.status, Object.keys(error)], [404, ['code', 'message']], path);
  }
  const other = (await (await gateway.get('/internship')).json()) as Json;
  assert.deepEqual(other.error.metadata, { error_type: 'not_found' });
});

test('the metadata of a request is found with its generation', async () => {
  upstream.script('chat', chatWhole('hello'));
  const metadata = { ticket: 'T-1', Grüße: '世界' };
  const { headers } = await post('/chat/completions', { model: 'test/chat', messages: MESSAGES, metadata });
  const id = headers.get('x-generation-id');
  const row = (await (await gateway.get(`/generation?id=${id}`, MANAGEMENT_KEY)).json()) as Json;
  assert.deepEqual(row.data.metadata, metadata);
});

test('routers, plugins and :online are reported as missing features, not as mistyped models', async () => {
  const ask = (model: string) => ({ model, messages: MESSAGES });
  for (const model of ['openrouter/bodybuilder', 'svc/auto:nitro']) {
    const error = await refused('/chat/completions', ask(model), /is a router/);
    assert.equal(error.availability, undefined);
  }
  const online = await refused('/chat/completions', ask('test/chat:online'), /needs a search engine, and none is/);
  assert.equal(online.availability, undefined);
  const mistyped = await refused('/chat/completions', ask('test/chad:online'), /not a known model/);
  assert.deepEqual(mistyped.availability, {
    code: 'model_not_found',
    retryable: false,
    requested_models: ['test/chad'],
    docs_url: '/docs',
  });
  await refused(
    '/chat/completions',
    { ...ask('test/chat'), plugins: [{ id: 'webb' }] },
    /plugins\[0\]\.id must be the id of a plugin, not "webb"/,
  );
});

test('errors have the format of their path, also for invalid paths and other media types', async () => {
  const read = async (path: string, init: RequestInit = {}) => {
    const reply = await fetch(gateway.url + path, init);
    return { status: reply.status, type: reply.headers.get('content-type'), body: (await reply.json()) as Json };
  };
  for (const path of ['/scim/v2/Users/%zz', '/scim/v2/%', '/scim/v2/nothing/here']) {
    const { status, type, body } = await read(path);
    assert.equal(type, 'application/scim+json', path);
    assert.deepEqual([body.schemas[0], body.status], ['urn:ietf:params:scim:api:messages:2.0:Error', String(status)]);
  }
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  const token = await read('/api/v1/oauth/token', init);
  assert.deepEqual([token.status, token.body.error], [415, 'invalid_request']);
  assert.equal(typeof token.body.error_description, 'string');
  const plain = await read('/api/v1/keys/%zz');
  assert.deepEqual([plain.status, plain.body.error.code], [400, 400]);
});
