/** `responses.compact` and `responses.inputTokens.count` of OpenAI's SDK, in front of upstreams of three formats. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { packSummary } from '../../src/formats/conversation/compaction.ts';
import { responses } from '../../src/formats/index.ts';
import type { Json } from '../../src/testing/gateway/sdk.ts';
import { startScene, UPSTREAMS } from './scene.ts';

const { gateway, openai, script } = await startScene();

const SUMMARY = 'Ada asked for the weather in Köln. It was sunny.';
const CALLED: Json[] = [
  { role: 'user', content: 'Weather in Köln?' },
  { type: 'reasoning', id: 'rs_1', summary: [] },
  { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{"city":"Köln"}' },
  { type: 'function_call_output', call_id: 'c1', output: 'sunny, 21' },
  { role: 'assistant', content: 'It is sunny.' },
];

for (const upstream of UPSTREAMS) {
  const model = `test/${upstream}`;

  test(`a compacted conversation keeps the user's messages, and continues with the summary | ${upstream}`, async () => {
    const sent = script(upstream, false, { text: SUMMARY }, { text: 'Take a hat.' }, { text: 'Shorter' });
    const compacted = await openai.responses.compact({ model, input: CALLED as Json, instructions: 'Be brief.' });
    assert.equal(compacted.object, 'response.compaction');
    assert.ok(compacted.usage.output_tokens > 0);
    assert.deepEqual(
      compacted.output.map(({ type }) => type),
      ['message', 'compaction'],
    );
    assert.equal(new Set(compacted.output.map(({ id }) => id)).size, 2);
    assert.match(compacted.id, /^resp_/);

    const next = [...(compacted.output as Json[]), { role: 'user', content: 'What shall I wear?' }];
    const answer = await openai.responses.create({ model, input: next, store: true });
    assert.equal(answer.output_text, 'Take a hat.');
    // A summary of a summary: the first one is not kept as if the user had written it.
    const again = await openai.responses.compact({ model, previous_response_id: answer.id });
    const said = again.output.filter(({ type }) => type === 'message').map((item: Json) => item.content[0].text);
    assert.deepEqual(said, ['Weather in Köln?', 'What shall I wear?']);

    const bodies = sent().map((each) => JSON.stringify(each));
    assert.match(bodies[0]!, /sunny, 21/);
    assert.match(bodies[0]!, /weather/);
    assert.match(bodies[0]!, /Write a summary/);
    for (const body of bodies) assert.doesNotMatch(body, /"tool_calls"|"tool_use"|"function_call"|"compaction"/);
    assert.ok(bodies[1]!.includes(SUMMARY));
    assert.ok(bodies[2]!.includes(SUMMARY));
  });

  test(`a summary that is missing or cut off is an error, never an empty conversation | ${upstream}`, async () => {
    script(upstream, false, { text: '' });
    await assert.rejects(openai.responses.compact({ model, input: 'hi' }), { status: 502 });
  });

  test(`the input of a request is counted with what it continues, and nothing is charged | ${upstream}`, async () => {
    script(upstream, false, { text: 'Bonjour' });
    const first = await openai.responses.create({ model, input: 'My name is Ada Lovelace.', store: true });
    const count = async (body: Json) => (await openai.responses.inputTokens.count({ model, ...body })).input_tokens;
    const alone = await count({ input: 'Who?' });
    assert.ok(alone > 0);
    assert.ok((await count({ input: 'Who?', previous_response_id: first.id })) > alone);
    assert.ok((await count({ input: 'Who?', instructions: 'Answer in the words of a poet.' })) > alone);
    await assert.rejects(count({ input: 'Who?', previous_response_id: 'resp_none' }), { status: 404 });
    await assert.rejects(count({ model: 'test/none', input: 'Who?' }), { status: 400 });
  });
}

test('a compaction that a vendor made is never dropped: models elsewhere are refused', async () => {
  for (const type of ['compaction', 'context_compaction']) {
    const input = [
      { type, encrypted_content: 'Z0FBQUFB' },
      { role: 'user', content: 'Go on.' },
    ];
    const refused = await gateway.post('/responses', { model: 'test/chat', input });
    assert.equal(refused.status, 400, await refused.clone().text());
    assert.match(await refused.text(), /request: input\[0\]:/);
    for (const tools of [[], [{ type: 'svc:datetime' }]]) {
      script('openai', false, { text: 'on' });
      assert.equal((await gateway.post('/responses', { model: 'test/openai', input, tools })).status, 200);
      const { input: sent } = gateway.upstream.requests('openai').at(-1)!.json as { input: Json[] };
      assert.deepEqual(sent[0], input[0]);
      assert.equal(sent.length, 2);
    }
  }
});

test('a compaction of Anthropic is never dropped: models elsewhere are refused', async () => {
  const compaction = { type: 'compaction', content: 'Ada lives in Köln.', encrypted_content: 'Z0FB' };
  const messages = [
    { role: 'user', content: 'Go on.' },
    { role: 'assistant', content: [compaction, { type: 'text', text: 'yes' }] },
    { role: 'user', content: 'Where?' },
  ];
  for (const tools of [[], [{ type: 'svc:datetime' }]]) {
    for (const model of ['test/chat', 'test/openai']) {
      const refused = await gateway.post('/messages', { model, max_tokens: 99, messages, tools });
      const text = await refused.text();
      assert.equal(refused.status, 400, text);
      assert.match(text, /messages\[1\]\.content\[0\]/);
    }
    const failed = {
      role: 'assistant',
      content: [
        { type: 'compaction', content: null },
        { type: 'text', text: 'yes' },
      ],
    };
    script('chat', false, { text: 'there' });
    const without = { model: 'test/chat', max_tokens: 99, messages: [messages[0], failed, messages[2]], tools };
    assert.equal((await gateway.post('/messages', without)).status, 200);
    script('messages', false, { text: 'there' });
    const body = { model: 'test/messages', max_tokens: 99, messages, tools };
    assert.equal((await gateway.post('/messages', body)).status, 200);
    const { messages: sent } = gateway.upstream.requests('messages').at(-1)!.json as { messages: Json[] };
    assert.deepEqual(sent[1].content[0], compaction);
  }
});

test('context management of OpenAI is refused with its path for models elsewhere', async () => {
  const context_management = [{ type: 'compaction', compact_threshold: 2000 }];
  const refused = await gateway.post('/responses', { model: 'test/chat', input: 'hi', context_management });
  const text = await refused.text();
  assert.equal(refused.status, 400, text);
  assert.match(text, /request: context_management:/);
  script('openai', false, { text: 'on' });
  assert.equal(
    (await gateway.post('/responses', { model: 'test/openai', input: 'hi', context_management })).status,
    200,
  );
  assert.deepEqual((gateway.upstream.requests('openai').at(-1)!.json as Json).context_management, context_management);
});

test('a value of include that no vendor names is refused with its path for models elsewhere', async () => {
  const include = ['reasoning.encrypted_content', 'web_search_call.action.sources', 'later.value'];
  const asked = (upstream: string, given: Json) => ({ model: `test/${upstream}`, input: 'hi', include: given });
  script('openai', false, { text: 'on' });
  assert.equal((await gateway.post('/responses', asked('openai', include))).status, 200);
  assert.deepEqual((gateway.upstream.requests('openai').at(-1)!.json as Json).include, include);
  script('chat', false, { text: 'on' });
  assert.equal((await gateway.post('/responses', asked('chat', include.slice(0, 2)))).status, 200);
  const refused = await gateway.post('/responses', asked('chat', include));
  const text = await refused.text();
  assert.equal(refused.status, 400, text);
  assert.match(text, /request: include\[2\]: only the responses format can read it/);
});

test('where no state is read, as in batches, a compaction is refused by its path', () => {
  const item = { type: 'compaction', encrypted_content: packSummary('x') };
  assert.throws(() => responses.check({ model: 'm', input: [item] }), /input\[0\] is a compaction of this gateway/);
});
