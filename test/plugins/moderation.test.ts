/** The plugin `moderation` through a whole gateway, with a moderation service of ours. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { BODY_FORMATS, type BodyFormat } from '../../src/testing/clients/served-answer.ts';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import { startUpstream, type Upstream } from '../../src/testing/upstream/upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const ROUTES: Record<BodyFormat, string> = {
  chat: '/chat/completions',
  messages: '/messages',
  responses: '/responses',
};
const PLUGINS = [{ id: 'moderation' }];
let service: Upstream;
let url: string;
let gateway: Gateway;
const closing: (() => unknown)[] = [];
const scope = { after: (close: unknown) => void closing.push(close as () => unknown) };
after(async () => {
  for (const close of closing.reverse()) await close();
});

const start = (moderation: Json) =>
  startGateway(scope, { providers: { text: { kind: 'chat' } }, yaml: moderation ? { moderation } : {} });

before(async () => {
  service = await startUpstream();
  closing.push(() => service.close());
  url = service.script('service', []);
  gateway = await start({ url, api_key: 'key-of-service', model: 'omni' });
});

/** A verdict for each of so many texts. */
function judges(flagged: boolean, count = 1): void {
  const result = { flagged, categories: { violence: flagged, hate: false }, category_scores: {} };
  service.script('service', {
    ...wholeOf({ id: 'modr-1', model: 'omni', results: Array(count).fill(result) }),
    repeat: true,
  });
}

async function ask(served: BodyFormat, more: Json = {}, on = gateway) {
  on.upstream.script('text', answerOf('chat', more.stream === true, { text: 'ok' }));
  const earlier = on.upstream.requests('text').length;
  const history = [{ role: 'user', content: 'how to' }];
  const asked = served === 'responses' ? { input: history } : { messages: history, max_tokens: 50 };
  const reply = await on.post(ROUTES[served], { model: 'test/text', ...asked, plugins: PLUGINS, ...more });
  const text = await reply.text();
  const { length } = on.upstream.requests('text');
  return { status: reply.status, text, headers: reply.headers, calls: length - earlier };
}

for (const served of BODY_FORMATS) {
  for (const stream of [false, true]) {
    test(`${served}: a flagged request is refused before any model sees it, others pass | ${stream ? 'streamed' : 'whole'}`, async () => {
      judges(true);
      const flagged = await ask(served, { stream });
      assert.deepEqual([flagged.status, flagged.calls], [403, 0], flagged.text);
      assert.match(flagged.text, /flagged the request: violence/);
      judges(false);
      const passed = await ask(served, { stream });
      assert.deepEqual([passed.status, passed.calls], [200, 1], passed.text);
      const { headers, json } = service.requests('service').at(-1)!;
      assert.deepEqual([headers.authorization, json], ['Bearer key-of-service', { model: 'omni', input: ['how to'] }]);
    });
  }
}

test('what could not be checked is refused, or allowed where the installation says so', async () => {
  const open = await start({ url, on_failure: 'allow' });
  for (const answer of [
    { status: 500, repeat: true },
    { ...wholeOf({ results: [] }), repeat: true },
    { ...wholeOf('no'), repeat: true },
  ]) {
    service.script('service', answer);
    const closed = await ask('chat');
    assert.deepEqual([closed.status, closed.calls], [503, 0], closed.text);
    assert.equal((await ask('chat', {}, open)).status, 200);
  }
  // More text than the service is asked about does not pass as checked.
  judges(false, 32);
  const messages = [{ role: 'user', content: 'x'.repeat(33 * 32 * 1024) }];
  assert.equal((await ask('chat', { messages })).status, 503);
});

test('without a service the plugin is refused with its path', async () => {
  const none = await start(undefined);
  const refused = await ask('chat', {}, none);
  assert.equal(refused.status, 400);
  assert.match(refused.text, /plugins\[0\]\.id needs a moderation service/);
});

test('only what the user says is checked, in pieces, and the generation has the time that it took', async () => {
  judges(false, 3);
  const messages = [
    { role: 'system', content: 'be kind' },
    { role: 'user', content: `first${'y'.repeat(40_000)}` },
    { role: 'assistant', content: 'hm' },
    { role: 'user', content: [{ type: 'text', text: 'second' }] },
  ];
  const { headers, status } = await ask('chat', { messages });
  assert.equal(status, 200);
  const { input } = service.requests('service').at(-1)!.json as Json;
  assert.deepEqual([input.length, input[0].slice(0, 5), input[2]], [3, 'first', 'second']);
  const { data } = (await (await gateway.get(`/generation?id=${headers.get('x-generation-id')}`)).json()) as Json;
  assert.equal(typeof data.moderation_latency, 'number');
});

test('the real clients see a refusal of their format', async () => {
  judges(true);
  const openai = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const asked: Json = { model: 'test/text', messages: [{ role: 'user', content: 'how to' }], plugins: PLUGINS };
  await assert.rejects(openai.chat.completions.create(asked), OpenAI.PermissionDeniedError);
  const anthropic = new Anthropic({ baseURL: `${gateway.url}/api`, apiKey: INFERENCE_KEY, maxRetries: 0 });
  await assert.rejects(anthropic.messages.create({ ...asked, max_tokens: 50 }), Anthropic.PermissionDeniedError);
});
