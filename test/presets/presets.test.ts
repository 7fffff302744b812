/** Presets through the unmodified SDKs: made from requests, used as model names in every served format, kept to their workspace. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI from 'openai';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: { kind: 'openrouter' }, messages: { kind: 'messages' } } },
);
const { call, keyIn, made, refused } = controlOf(gateway);
const told = { text: 'Hello.', usage: { input: 100, output: 20 } };
for (const format of ['chat', 'messages'] as const) {
  gateway.upstream.script(format, { ...answerOf(format, false, told), repeat: true });
}
const openrouter = new OpenRouter({ apiKey: INFERENCE_KEY, serverURL: gateway.api });
const openai = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api, maxRetries: 0 });
const anthropic = new Anthropic({ apiKey: INFERENCE_KEY, baseURL: `${gateway.url}/api`, maxRetries: 0 });
const genai = new GoogleGenAI({ apiKey: INFERENCE_KEY, httpOptions: { baseUrl: gateway.url } });
const hi = [{ role: 'user' as const, content: 'hi' }];
/** The body of the newest request to an upstream. */
const sent = (upstream = 'chat'): Json => gateway.upstream.requests(upstream).at(-1)!.json;

const tool = {
  type: 'function' as const,
  function: { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } },
};

test('requests of the three formats make the versions of a preset, and the SDK reads them back', async () => {
  const { data: first } = await openrouter.presets.createPresetsChatCompletions({
    slug: 'writer',
    chatRequest: {
      model: 'test/chat',
      messages: [{ role: 'system', content: 'Write well.' }, ...hi],
      temperature: 0.3,
      maxTokens: 50,
      stream: true,
      user: 'somebody',
    },
  });
  assert.deepEqual(first.designatedVersion!.config, { model: 'test/chat', temperature: 0.3, max_tokens: 50 });
  assert.equal(first.designatedVersion!.systemPrompt, 'Write well.');
  assert.deepEqual([first.slug, first.status, first.designatedVersion!.version], ['writer', 'active', 1]);
  await openrouter.presets.createPresetsMessages({
    slug: 'writer',
    messagesRequest: { model: 'test/messages', system: 'Write better.', maxTokens: 60, messages: hi },
  });
  const { data: third } = await openrouter.presets.createPresetsResponses({
    slug: 'writer',
    responsesRequest: { model: 'test/chat', instructions: 'Write best.', input: 'x', maxOutputTokens: 70 },
  });
  assert.equal(third.id, first.id);
  const { data: shown } = await openrouter.presets.get({ slug: 'writer' });
  assert.deepEqual(shown, third);
  assert.deepEqual(shown.designatedVersion!.config, { model: 'test/chat', max_output_tokens: 70 });
  const pages = [];
  for await (const page of await openrouter.presets.listVersions({ slug: 'writer', limit: 2 }))
    pages.push(page.result.data);
  const versions = pages.flat();
  assert.deepEqual(
    versions.map((each) => [each?.version, each?.systemPrompt]),
    [
      [1, 'Write well.'],
      [2, 'Write better.'],
      [3, 'Write best.'],
    ],
  );
  const { data: second } = await openrouter.presets.getVersion({ slug: 'writer', version: '2' });
  assert.deepEqual(second, versions[1]);
  const { result: list } = await openrouter.presets.list();
  assert.deepEqual(
    list.data.map(({ slug, designatedVersionId }) => [slug, designatedVersionId]),
    [['writer', third.designatedVersionId]],
  );
});

test('a preset is a model in every format, and the request overrides it', async () => {
  await openrouter.presets.createPresetsChatCompletions({
    slug: 'all',
    chatRequest: {
      model: 'test/chat',
      messages: [{ role: 'developer', content: 'Be brief.' }],
      temperature: 0.25,
      maxTokens: 64,
      stop: ['END'],
      tools: [tool],
      provider: { only: ['chat', 'messages'] },
    },
  });
  const reply = await openai.chat.completions.create({ model: '@preset/all', messages: hi });
  assert.equal(reply.model, 'test/chat');
  const { temperature, max_tokens, stop, tools, messages } = sent();
  assert.deepEqual([temperature, max_tokens, stop, tools], [0.25, 64, ['END'], [tool]]);
  assert.deepEqual(messages, [{ role: 'system', content: 'Be brief.' }, ...hi]);
  const row = (await call('GET', `/generation?id=${reply.id}`, undefined, INFERENCE_KEY)).body.data;
  assert.equal(row.preset_id, (await openrouter.presets.get({ slug: 'all' })).data.id);

  // A preset may choose among the tools of the requests that use it, and a request among those of its preset.
  await openrouter.presets.createPresetsChatCompletions({
    slug: 'forced',
    chatRequest: { model: 'test/chat', messages: hi, toolChoice: 'required' },
  });
  await openai.chat.completions.create({ model: '@preset/forced', messages: hi, tools: [tool] });
  assert.equal(sent().tool_choice, 'required');
  await openai.chat.completions.create({ model: '@preset/all', messages: hi, tool_choice: 'required' });
  assert.equal(sent().tool_choice, 'required');

  await openai.chat.completions.create({
    model: '@preset/all',
    messages: [{ role: 'system', content: 'Own.' }, ...hi],
    temperature: 1,
    max_completion_tokens: 8,
  });
  assert.deepEqual([sent().temperature, sent().max_tokens, sent().messages[0].content], [1, 8, 'Own.']);

  await anthropic.messages.create({ model: '@preset/all', max_tokens: 32, messages: hi });
  assert.deepEqual(
    [sent().temperature, sent().max_tokens, sent().stop, sent().tools[0].function.name],
    [0.25, 32, ['END'], 'look'],
  );
  assert.deepEqual(sent().messages[0], { role: 'system', content: 'Be brief.' });
  await anthropic.messages.create({ model: 'test/messages@preset/all', max_tokens: 32, messages: hi });
  assert.deepEqual([sent('messages').temperature, sent('messages').stop_sequences], [0.25, ['END']]);
  assert.equal(sent('messages').tools[0].name, 'look');

  await openai.responses.create({ model: '@preset/all', input: 'hi' });
  assert.deepEqual([sent().temperature, sent().max_tokens, sent().tools[0].function.name], [0.25, 64, 'look']);
  const field = { model: 'test/messages', preset: 'all', input: 'hi' };
  await openai.responses.create(field);
  assert.deepEqual([sent('messages').max_tokens, sent('messages').temperature], [64, 0.25]);

  await genai.models.generateContent({ model: '@preset/all', contents: 'hi' });
  assert.deepEqual([sent().temperature, sent().messages[0].content], [0.25, 'Be brief.']);
  const counted = await anthropic.messages.countTokens({ model: '@preset/all', messages: hi });
  const plain = await anthropic.messages.countTokens({ model: 'test/chat', messages: hi });
  assert.ok(counted.input_tokens > plain.input_tokens, 'the system text of the preset counts');
  const text = await openai.completions.create({ model: '@preset/all', prompt: 'hi', max_tokens: 5 });
  assert.equal(text.model, 'test/chat');
});

test('guardrails, disabled tools and routing judge the request with its preset', async () => {
  const workspace = await made({ name: 'judged', slug: 'judged' });
  const key = await keyIn(workspace.id, 'judged');
  const create = (slug: string, body: Json) =>
    call('POST', `/presets/${slug}/chat/completions?workspace_id=${workspace.id}`, body);
  assert.equal(
    (await create('secret', { model: 'test/chat', messages: [{ role: 'system', content: 'the password' }] })).status,
    200,
  );
  assert.equal((await create('other', { model: 'test/messages' })).status, 200);
  assert.equal((await create('date', { model: 'test/chat', tools: [{ type: 'svc:datetime' }] })).status, 200);
  assert.equal((await key.ask({ model: '@preset/secret' })).status, 200);
  const filters = [{ pattern: 'password', action: 'block' }];
  const body = { name: 'g', workspace_id: workspace.id, content_filters: filters, allowed_models: ['test/chat'] };
  const { id } = (await call('POST', '/guardrails', body)).body.data;
  await call('POST', `/guardrails/${id}/assignments/keys`, { key_hashes: [key.hash] });
  await call('PATCH', `/workspaces/${workspace.id}`, { disabled_server_tools: ['svc:datetime'] });
  assert.equal((await key.ask({ model: '@preset/secret' })).status, 403);
  assert.equal((await key.ask({ model: '@preset/other' })).status, 403);
  const refusal = await key.ask({ model: '@preset/date' });
  assert.equal(refusal.body.error.metadata.disabled_server_tool, 'svc:datetime');
});

test('a preset belongs to one workspace; other names are refused with their field', async () => {
  const [one, two] = [await made({ name: 'one', slug: 'one' }), await made({ name: 'two', slug: 'two' })];
  const [own, foreign] = [await keyIn(one.id, 'own'), await keyIn(two.id, 'foreign')];
  assert.equal((await call('POST', '/presets/mine/chat/completions', { model: 'test/chat' }, own.token)).status, 200);
  assert.equal((await own.ask({ model: '@preset/mine' })).status, 200);
  for (const [key, body, path] of [
    [foreign, { model: '@preset/mine' }, 'model'],
    [own, { model: '@preset/' }, 'model'],
    [own, { model: 'test/chat', preset: 'none' }, 'preset'],
  ] as const) {
    const { status, body: told } = await key.ask(body);
    assert.equal(status, 404, JSON.stringify(told));
    assert.ok(told.error.message.startsWith(`${path} names a preset`), told.error.message);
  }
  for (const [body, path] of [
    [{ model: '@preset/mine', preset: 'other' }, 'preset'],
    [{ model: 'test/chat', models: ['@preset/mine'] }, 'models[0]'],
  ] as const) {
    const { status, body: told } = await own.ask(body);
    assert.equal(status, 400, JSON.stringify(told));
    assert.ok(told.error.message.startsWith(`${path} `), told.error.message);
  }
  for (const path of ['/presets/mine', '/presets/mine/versions', '/presets/mine/versions/1']) {
    assert.equal((await call('GET', path, undefined, own.token)).status, 200, path);
    assert.equal((await call('GET', path, undefined, foreign.token)).status, 404, path);
  }
  assert.equal((await call('GET', '/presets', undefined, foreign.token)).body.total_count, 0);
  await refused(call('GET', `/presets?workspace_id=${one.id}`, undefined, foreign.token), 403, /workspace_id/);
  await refused(call('DELETE', '/presets/mine', undefined, own.token), 403, /key/);
  assert.equal((await call('DELETE', `/presets/mine?workspace_id=${one.id}`)).status, 200);
  assert.equal((await own.ask({ model: '@preset/mine' })).status, 404);
});

test('what a preset cannot hold is refused with its field', async () => {
  const create = (body: Json, slug = 'bad', format = 'chat/completions') =>
    call('POST', `/presets/${slug}/${format}`, body);
  for (const [body, path] of [
    [{ model: '@preset/all' }, 'model'],
    [{ preset: 'all' }, 'preset'],
    [{ temperature: 9 }, 'temperature'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function'],
    [{ tools: [{ type: 'mcp', authorization: 'x' }] }, 'tools[0].authorization'],
    [{ cache_ttl_seconds: 0 }, 'cache_ttl_seconds'],
    [{ plugins: [{ id: 'web' }, { id: 'nope' }] }, 'plugins[1].id'],
    [{ plugins: [{ id: 'web', max_results: 'x' }] }, 'plugins[0].max_results'],
    [{ messages: [{ role: 'system', content: 'x'.repeat(131_072) }] }, 'the body'],
    [{ messages: [{ role: 'system', content: 'a\0b' }] }, 'messages[0].content'],
  ] as const) {
    const { status, body: told } = await create(body);
    assert.equal(status, 400, JSON.stringify(told));
    assert.ok(told.error.message.startsWith(path), told.error.message);
  }
  await refused(create({}, '-a'), 400, /^slug /);
  assert.equal((await create({ thinking: { type: 'enabled' } }, 'bad', 'messages')).status, 400);
  await refused(call('GET', '/presets/bad'), 404, /preset/);
  await refused(call('GET', '/presets/all/versions/zero'), 404, /version/);
});

test('cached answers follow the preset', async () => {
  const create = (slug: string, cache_enabled: boolean) =>
    call('POST', `/presets/${slug}/chat/completions`, { model: 'test/chat', cache_enabled }, INFERENCE_KEY);
  assert.equal((await create('cached', true)).status, 200);
  assert.equal((await create('uncached', false)).status, 200);
  const ask = async (model: string) => {
    const response = await fetch(`${gateway.api}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json', 'x-svc-cache': 'true' },
      body: JSON.stringify({ model, messages: hi }),
    });
    await response.arrayBuffer();
    return response.headers.get('x-svc-cache-status');
  };
  assert.deepEqual([await ask('@preset/uncached'), await ask('@preset/cached')], [null, 'MISS']);
  const { data, response } = await openai.chat.completions
    .create({ model: '@preset/cached', messages: hi })
    .withResponse();
  assert.ok(data);
  assert.equal(response.headers.get('x-svc-cache-status'), 'HIT');
});

test('changes of presets are in the audit log', async () => {
  await call('POST', '/presets/seen/messages', { model: 'test/messages', temperature: 0 });
  await call('POST', '/presets/seen/messages', { model: 'test/messages', temperature: 1 });
  await call('DELETE', '/presets/seen');
  const { data } = (await call('GET', '/audit?resource_type=preset&limit=3')).body;
  assert.deepEqual(
    data.map(({ action }: Json) => action),
    ['preset.deleted', 'preset.updated', 'preset.created'],
  );
});
