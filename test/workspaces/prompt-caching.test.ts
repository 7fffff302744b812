/** Prompt cache breakpoints that the gateway places, through a whole gateway: request, workspace and account settings. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { controlOf } from './control.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const UNPRICED = { prompt: '0.000003', completion: '0.000015' };
const started = (account: object) =>
  startGateway(
    { after: (close) => after(close as () => Promise<void>) },
    {
      providers: {
        claude: { kind: 'messages' },
        unpriced: { kind: 'messages', model: { pricing: UNPRICED } },
        chat: {},
      },
      yaml: { account },
    },
  );
const gateway = await started({});
const { upstream } = gateway;
const control = controlOf(gateway);

const SYSTEM = 'Answer in one word. '.repeat(80);
const CONVERSATION = [
  { role: 'system', content: SYSTEM },
  { role: 'user', content: 'first' },
  { role: 'assistant', content: 'yes' },
  { role: 'user', content: 'second' },
];
const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];

/** Where the body that reached the upstream has breakpoints. */
function marksOf(body: Json, path = ''): string[] {
  if (typeof body !== 'object' || body === null) return [];
  return Object.entries(body).flatMap(([key, value]) => {
    const at = path === '' ? key : `${path}.${key}`;
    return key === 'cache_control' ? [path] : marksOf(value, at);
  });
}

interface Asked {
  status: number;
  body: Json;
  id: string;
  marks: string[];
  upstreamBody: Json;
}

async function ask(
  body: Json,
  { headers = {}, key = INFERENCE_KEY, of = gateway, route = '/chat/completions', provider = 'claude' } = {},
): Promise<Asked> {
  const format = provider === 'chat' ? 'chat' : 'messages';
  const usage = { input: 20, cacheRead: 1000, cacheWrite: 100, output: 5 };
  of.upstream.script(provider, [answerOf(format, false, { text: 'fine', usage })]);
  const response = await fetch(of.api + route, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: `test/${provider}`, ...body }),
  });
  const received = of.upstream.requests(provider).at(-1)?.json as Json;
  return {
    status: response.status,
    body: await response.json(),
    id: response.headers.get('x-generation-id') ?? '',
    marks: response.ok ? marksOf(received) : [],
    upstreamBody: received,
  };
}

const PLACED = ['system.0', 'messages.0.content.0', 'messages.2.content.0'];

test('a translated request without breakpoints gets them after the system prompt and the last two turns', async () => {
  assert.deepEqual((await ask({ messages: CONVERSATION })).marks, PLACED);
  assert.deepEqual((await ask({ messages: CONVERSATION, tools: TOOLS })).marks, [
    'system.0',
    'tools.0',
    ...PLACED.slice(1),
  ]);
});

test('the generation reports the savings of caching', async () => {
  const { id, body } = await ask({ messages: CONVERSATION });
  const row = ((await (await gateway.get(`/generation?id=${id}`, MANAGEMENT_KEY)).json()) as Json).data;
  // 1,000 tokens read at a tenth of the price, 100 written at a quarter more.
  assert.equal(row.cache_discount, 1000 * (0.000003 - 0.0000003) - 100 * (0.00000375 - 0.000003));
  assert.equal(row.native_tokens_cached, 1000);
  assert.deepEqual(
    [body.usage.prompt_tokens_details.cached_tokens, body.usage.prompt_tokens_details.cache_write_tokens],
    [1000, 100],
  );
});

test('a client that sets a breakpoint keeps its own, and only those', async () => {
  const marked = { type: 'text', text: SYSTEM, cache_control: { type: 'ephemeral', ttl: '1h' } };
  const { marks, upstreamBody } = await ask({
    messages: [{ role: 'system', content: [marked] }, ...CONVERSATION.slice(1)],
  });
  assert.deepEqual(marks, ['system.0']);
  assert.equal(upstreamBody.system[0].cache_control.ttl, '1h');
  assert.deepEqual((await ask({ messages: CONVERSATION, cache_control: { type: 'ephemeral' } })).marks, ['']);
});

test('prompts that no provider caches, models without a price for it and chat upstreams get no breakpoints', async () => {
  assert.deepEqual(
    (await ask({ messages: [{ role: 'system', content: 'short' }, ...CONVERSATION.slice(1)] })).marks,
    [],
  );
  assert.deepEqual((await ask({ messages: CONVERSATION }, { provider: 'unpriced' })).marks, []);
  assert.deepEqual((await ask({ messages: CONVERSATION }, { provider: 'chat' })).marks, []);
});

test('a relayed request gets none unless it, its workspace or the account asks for them', async () => {
  const body = { max_tokens: 9, system: SYSTEM, messages: CONVERSATION.slice(1) };
  const route = '/messages';
  assert.deepEqual((await ask(body, { route })).marks, []);
  const asked = await ask(body, { route, headers: { 'x-svc-prompt-caching': 'always' } });
  assert.deepEqual(asked.marks, PLACED);
  assert.equal(asked.upstreamBody.system[0].text, SYSTEM);
  const workspace = await control.made({ name: 'Relay', slug: 'relay', prompt_caching: 'always' });
  assert.equal(workspace.prompt_caching, 'always');
  const key = (await control.keyIn(workspace.id, 'relay')).token;
  assert.deepEqual((await ask(body, { route, key })).marks, PLACED);
});

test('the request wins over the workspace, and the workspace over the account', async () => {
  const off = await control.made({ name: 'Off', slug: 'off', prompt_caching: 'off' });
  const key = (await control.keyIn(off.id, 'off')).token;
  const body = { messages: CONVERSATION };
  assert.deepEqual((await ask(body, { key })).marks, []);
  assert.deepEqual((await ask(body, { key, headers: { 'X-OpenRouter-Prompt-Caching': 'translated' } })).marks, PLACED);
  assert.deepEqual((await ask(body, { headers: { 'x-svc-prompt-caching': 'OFF' } })).marks, []);
  assert.deepEqual((await ask({ ...body, prompt_cache_options: { mode: 'explicit' } })).marks, []);
  const changed = await control.call('PATCH', `/workspaces/${off.id}`, { prompt_caching: null });
  assert.equal(changed.body.data.prompt_caching, null);
  assert.deepEqual((await ask(body, { key })).marks, PLACED);
});

test('the account setting is the default of every workspace', async () => {
  const of = await started({ prompt_caching: 'off' });
  assert.deepEqual((await ask({ messages: CONVERSATION }, { of })).marks, []);
  const headers = { 'x-svc-prompt-caching': 'translated' };
  assert.deepEqual((await ask({ messages: CONVERSATION }, { of, headers })).marks, PLACED);
});

test('an unknown mode is refused with the name of the header or the field', async () => {
  const wrong = await ask({ messages: CONVERSATION }, { headers: { 'x-svc-prompt-caching': 'yes' } });
  assert.equal(wrong.status, 400);
  assert.match(wrong.body.error.message, /x-svc-prompt-caching must be one of off, translated, always/);
  const { status, body } = await control.call('POST', '/workspaces', { name: 'x', slug: 'x', prompt_caching: 'on' });
  assert.equal(status, 400);
  assert.match(body.error.message, /prompt_caching/);
});

test('official SDKs reach the same breakpoints and read the counts of the cache', async () => {
  const usage = { input: 20, cacheRead: 1000, cacheWrite: 100, output: 5 };
  upstream.script('claude', [answerOf('messages', true, { text: 'fine', usage })]);
  const openai = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const stream = await openai.chat.completions.create({
    model: 'test/claude',
    stream: true,
    messages: CONVERSATION as OpenAI.ChatCompletionMessageParam[],
  });
  let cached: number | undefined;
  for await (const chunk of stream) cached = chunk.usage?.prompt_tokens_details?.cached_tokens ?? cached;
  assert.equal(cached, 1000);
  assert.deepEqual(marksOf(upstream.requests('claude').at(-1)!.json), PLACED);
  upstream.script('claude', [answerOf('messages', false, { text: 'fine', usage })]);
  const anthropic = new Anthropic({ baseURL: gateway.url + '/api', apiKey: INFERENCE_KEY, maxRetries: 0 });
  const message = await anthropic.messages.create(
    {
      model: 'test/claude',
      max_tokens: 9,
      system: SYSTEM,
      messages: CONVERSATION.slice(1) as Anthropic.MessageParam[],
    },
    { headers: { 'x-svc-prompt-caching': 'always' } },
  );
  assert.equal(message.usage.cache_read_input_tokens, 1000);
  assert.deepEqual(marksOf(upstream.requests('claude').at(-1)!.json), PLACED);
});
