/**
 * Message threads: the SDK's tool runner asks for them by default. They are relayed where the upstream holds them, and
 * refused elsewhere with the message that makes the SDK continue without it.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of requests and answers
type Json = any;

const TEST = { after: (close: unknown) => after(close as () => Promise<void>) };
const model = { id: 'test/two' };
const gateway = await startGateway(TEST, {
  providers: {
    chat: {},
    held: { kind: 'messages' },
    anthropic: { kind: 'anthropic', api_key: ['first-key', 'second-key', 'third-key'] },
    one: { kind: 'messages', model },
    other: { kind: 'messages', model },
    plain: { kind: 'deepseek' },
  },
});
const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: INFERENCE_KEY, authToken: null, maxRetries: 0 });

const weather = betaTool({
  name: 'weather',
  description: 'The weather of a city',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  run: () => 'rain',
});

const CALL = answerOf('messages', false, { calls: [{ id: 'toolu_1', name: 'weather', arguments: '{"city":"Bonn"}' }] });

/** A whole answer in the messages format with an id of its own. */
function withId(id: string, answer: Answer = answerOf('messages', false, { text: 'It rains.' })): Answer {
  return wholeOf({ ...JSON.parse(String(answer.chunks![0])), id });
}

const refused = (status: number, error_code: string): Answer =>
  wholeOf(
    { type: 'error', error: { type: 'invalid_request_error', message: 'no', details: { error_code } } },
    { status },
  );

function run(name: string): Promise<Json> {
  return anthropic.beta.messages
    .toolRunner({
      model: `test/${name}`,
      max_tokens: 1000,
      messages: [{ role: 'user', content: 'How is the weather in Bonn?' }],
      tools: [weather],
    })
    .runUntilDone();
}

const bodies = (name: string): Json[] => gateway.upstream.requests(name).map(({ json }) => json);
const post = async (body: object, headers: Record<string, string> = {}): Promise<{ status: number; json: Json }> => {
  const base = { max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] };
  const reply = await gateway.post('/messages', { ...base, ...body }, headers);
  return { status: reply.status, json: await reply.json() };
};

/** The secret of a new key. */
async function createKey(body: object): Promise<string> {
  const reply = await gateway.post('/keys', body, { authorization: `Bearer ${MANAGEMENT_KEY}` });
  return ((await reply.json()) as Json).key;
}

test('a thread toward an endpoint that holds none is refused by name, and nothing is sent', async () => {
  for (const name of ['chat', 'plain']) {
    for (const thread of [{ type: 'create' }, { type: 'continue', previous_message_id: 'gen-1' }]) {
      const { status, json } = await post({ model: `test/${name}`, thread });
      assert.equal(status, 400);
      assert.deepEqual(json.error.details, { error_code: 'thread_unsupported_request', unsupported: ['thread'] });
    }
    assert.equal(gateway.upstream.requests(name).length, 0);
  }
});

test('the SDK’s tool runner continues without a thread and sends the whole history', async () => {
  gateway.upstream.script('chat', [
    answerOf('chat', false, { calls: [{ id: 'call_1', name: 'weather', arguments: '{"city":"Bonn"}' }] }),
    answerOf('chat', false, { text: 'It rains.' }),
  ]);
  const last = await run('chat');
  assert.equal(last.content[0].text, 'It rains.');
  assert.deepEqual(
    bodies('chat').map(({ messages }) => messages.map(({ role }: Json) => role)),
    [['user'], ['user', 'assistant', 'tool']],
  );
});

test('a relayed thread is continued under the upstream’s own id with what is new', async () => {
  gateway.upstream.script('held', [withId('msg_up_1', CALL), withId('msg_up_2')]);
  const last = await run('held');
  assert.equal(last.content[0].text, 'It rains.');
  const [first, second] = bodies('held');
  assert.deepEqual(first.thread, { type: 'create' });
  assert.deepEqual(second.thread, { type: 'continue', previous_message_id: 'msg_up_1' });
  assert.deepEqual(
    second.messages.map(({ content }: Json) => content[0].type),
    ['tool_result'],
  );
  const [{ headers }] = gateway.upstream.requests('held') as [Json];
  assert.match(headers['anthropic-beta'], /threads/);
});

test('a thread that the upstream has lost is 404, and the SDK starts a new one', async () => {
  const before = bodies('held').length;
  gateway.upstream.script('held', [withId('msg_up_3', CALL), refused(404, 'thread_not_found'), withId('msg_up_4')]);
  const last = await run('held');
  assert.equal(last.content[0].text, 'It rains.');
  const replayed = bodies('held')[before + 2];
  assert.deepEqual([replayed.thread, replayed.messages.length], [{ type: 'create' }, 3]);
});

test('what an upstream says of its error reaches the client, and is no fault of the endpoint', async () => {
  for (const [code, status, shown] of [
    ['thread_not_found', 404, 404],
    ['thread_already_continued', 400, 400],
    ['thread_continue_in_flight', 409, 400],
    ['compaction_block_misplaced', 400, 400],
  ] as const) {
    gateway.upstream.script('held', [refused(status, code), withId('msg_up_5')]);
    const answer = await post({ model: 'test/held', thread: { type: 'create' } });
    assert.deepEqual([answer.status, answer.json.error.details], [shown, { error_code: code }]);
    assert.equal((await post({ model: 'test/held' })).status, 200);
  }
});

test('a thread stays with the endpoint and the credential that hold it', async () => {
  const used = () => gateway.upstream.requests('anthropic').map(({ headers }) => headers['x-api-key']);
  gateway.upstream.script('anthropic', withId('msg_up_6'));
  let { json } = await post({ model: 'test/anthropic', thread: { type: 'create' } });
  for (let round = 0; round < 4; round++) {
    await post({ model: 'test/anthropic' });
    const thread = { type: 'continue', previous_message_id: json.id };
    ({ json } = await post({ model: 'test/anthropic', messages: [], thread }));
    assert.equal(used().at(-1), used()[0]);
  }
  gateway.upstream.script('one', { status: 529, chunks: ['{}'] });
  gateway.upstream.script('other', withId('msg_up_7'));
  const begun = await post({ model: 'test/two', thread: { type: 'create' } });
  gateway.clock.jump(60_000);
  gateway.upstream.script('one', withId('msg_wrong'));
  const thread = { type: 'continue', previous_message_id: begun.json.id };
  const continued = await post({ model: 'test/two', thread, provider: { order: ['one'] } });
  assert.deepEqual([continued.status, continued.json.provider], [200, 'Provider other']);
  assert.equal(bodies('other').at(-1).thread.previous_message_id, 'msg_up_7');
});

test('threads of other keys and unknown threads cannot be continued', async () => {
  gateway.upstream.script('held', withId('msg_up_8'));
  const { json } = await post({ model: 'test/held', thread: { type: 'create' } });
  const before = gateway.upstream.requests('held').length;
  const key = await createKey({ name: 'another' });
  for (const [id, headers] of [
    [json.id, { authorization: `Bearer ${key}` }],
    ['gen-unknown', {}],
    ['msg_up_8', {}],
  ] as const) {
    const answer = await post({ model: 'test/held', thread: { type: 'continue', previous_message_id: id } }, headers);
    assert.deepEqual([answer.status, answer.json.error.details], [404, { error_code: 'thread_not_found' }]);
  }
  assert.equal(gateway.upstream.requests('held').length, before);
});

test('another process continues a thread with the same endpoint and credential', async () => {
  gateway.upstream.script('anthropic', withId('msg_up_9'));
  const { json } = await post({ model: 'test/anthropic', thread: { type: 'create' } });
  const key = gateway.upstream.requests('anthropic').at(-1)!.headers['x-api-key'];
  const second = await startGateway(TEST, {
    target: gateway.target,
    providers: {
      anthropic: { kind: 'anthropic', api_key: ['first-key', 'second-key', 'third-key'] },
    },
  });
  second.upstream.script('anthropic', withId('msg_up_10'));
  await rowOf(second, json.id);
  const body = {
    model: 'test/anthropic',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'and?' }],
    thread: { type: 'continue', previous_message_id: json.id },
  };
  const reply = await second.post('/messages', body);
  assert.equal(reply.status, 200, await reply.clone().text());
  const [request] = second.upstream.requests('anthropic') as [Json];
  assert.deepEqual([request.json.thread.previous_message_id, request.headers['x-api-key']], ['msg_up_9', key]);
});

test('a thread that is malformed is refused with its path', async () => {
  for (const [thread, path] of [
    ['create', 'thread'],
    [{ type: 'begin' }, 'thread.type'],
    [{ type: 'continue' }, 'thread.previous_message_id'],
  ] as const) {
    const { status, json } = await post({ model: 'test/held', thread });
    assert.equal(status, 400);
    assert.match(json.error.message, new RegExp(`^${path.replaceAll('.', '\\.')} `));
  }
  gateway.upstream.script('chat', [answerOf('chat', false, { text: 'hi' })]);
  assert.equal((await post({ model: 'test/chat', thread: null })).status, 200);
});

test('a limit holds what a continued thread could cost: the whole context', async () => {
  gateway.upstream.script('held', withId('msg_up_11'));
  // 200,000 tokens of context at 3 USD a million are 0.6 USD.
  const key = await createKey({ name: 'limited', limit: 0.5 });
  const headers = { authorization: `Bearer ${key}` };
  const begun = await post({ model: 'test/held', thread: { type: 'create' } }, headers);
  assert.equal(begun.status, 200);
  const thread = { type: 'continue', previous_message_id: begun.json.id };
  assert.equal((await post({ model: 'test/held', thread }, headers)).status, 402);
});

test('an earlier answer that diagnostics compare with is named as the upstream knows it', async () => {
  gateway.upstream.script('held', withId('msg_up_12'));
  const { json } = await post({ model: 'test/held' });
  for (const [id, sent] of [
    [json.id, 'msg_up_12'],
    ['gen-unknown', 'gen-unknown'],
    [null, null],
  ]) {
    const answer = await post({ model: 'test/held', diagnostics: { previous_message_id: id } });
    assert.equal(answer.status, 200);
    assert.deepEqual(bodies('held').at(-1).diagnostics, { previous_message_id: sent });
  }
});
