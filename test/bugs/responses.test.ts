/** Failures around the responses format that users of other gateways met, each through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { readServedStream, readServedWhole } from '../../src/testing/clients/served-answer.ts';
import { rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { readServerSentEvents } from '../../src/testing/recordings/corpus.ts';
import { streamOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import {
  responsesAnswer,
  responsesData,
  responsesEvents,
  responsesReply,
} from '../../src/testing/upstream/responses-answers.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { responses: { kind: 'responses' }, openai: { kind: 'openai' }, chat: {} } },
);

// biome-ignore lint/suspicious/noExplicitAny: bodies of every format
type Json = any;

const CREATED = { type: 'response.created', response: { id: 'resp_t', status: 'in_progress', output: [] } };
const USAGE = { input_tokens: 9, output_tokens: 9, total_tokens: 18 };
const COMPLETED = {
  type: 'response.completed',
  response: { id: 'resp_t', status: 'completed', output: [], usage: USAGE },
};
const call = (index: number, id: string) => ({
  type: 'response.output_item.added',
  output_index: index,
  item: { type: 'function_call', id: `fc_${index}`, call_id: id, name: 'add', arguments: '' },
});
const piece = (index: number, delta: string) => ({
  type: 'response.function_call_arguments.delta',
  item_id: `fc_${index}`,
  output_index: index,
  delta,
});

async function post(path: string, body: Json): Promise<{ status: number; text: string; id: string }> {
  const reply = await gateway.post(path, body);
  return { status: reply.status, text: await reply.text(), id: reply.headers.get('x-generation-id') ?? '' };
}

const chatBody = { model: 'test/responses', messages: [{ role: 'user', content: 'add two' }], stream: true };
const CHAT_TOOLS = [{ type: 'function', function: { name: 'add', parameters: { type: 'object', properties: {} } } }];

test('9 | a stream that ends with its terminal event and without [DONE] is complete', async () => {
  const message = { type: 'message', id: 'msg_t', role: 'assistant', status: 'completed' };
  const output = [{ ...message, content: [{ type: 'output_text', text: 'hi', annotations: [] }] }];
  const usage = { input_tokens: 3, output_tokens: 1, total_tokens: 4 };
  const events = [CREATED, { ...COMPLETED, response: { ...COMPLETED.response, output, usage } }];
  gateway.upstream.script('responses', streamOf(events.map(responsesData)));
  const { text, id } = await post('/responses', { model: 'test/responses', input: 'hi', stream: true });
  const types = readServerSentEvents(text).map(({ name }) => name);
  assert.deepEqual(types.slice(0, 2), ['response.created', 'response.completed']);
  assert.doesNotMatch(text, /"type":"(error|response\.failed)"/);
  const row = await rowOf(gateway, id);
  assert.deepEqual([row['tokens_prompt'], row['tokens_completion'], row['finish_reason']], [3, 1, 'stop']);
});

test('21 | each call has its own index, id and fragments for chat clients', async () => {
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [] };
  const events = [
    CREATED,
    { type: 'response.output_item.added', output_index: 0, item: reasoning },
    call(1, 'call_1'),
    call(2, 'call_2'),
    piece(2, '{"t":"b"}'),
    piece(1, '{"t":"a"}'),
    COMPLETED,
  ];
  gateway.upstream.script('responses', streamOf(events.map(responsesData)));
  const { text } = await post('/chat/completions', { ...chatBody, tools: CHAT_TOOLS });
  const [choice] = readServedStream('chat', text, 'finish').choices;
  assert.deepEqual(choice!.calls, [
    { id: 'call_1', name: 'add', arguments: '{"t":"a"}' },
    { id: 'call_2', name: 'add', arguments: '{"t":"b"}' },
  ]);
  assert.equal(choice!.finish, 'tool_calls');
});

test('25 | an empty argument fragment is accepted, and so is a stream without a start event', async () => {
  const events = [call(0, 'call_1'), piece(0, ''), piece(0, '{"k":1}'), COMPLETED];
  gateway.upstream.script('responses', streamOf(events.map(responsesData)));
  const { text } = await post('/chat/completions', { ...chatBody, tools: CHAT_TOOLS });
  const read = readServedStream('chat', text, 'finish');
  assert.equal(read.error, null);
  assert.deepEqual(read.choices[0]!.calls, [{ id: 'call_1', name: 'add', arguments: '{"k":1}' }]);
  const relayed = await post('/responses', { model: 'test/responses', input: 'x', stream: true });
  const told = readServerSentEvents(relayed.text).slice(0, -1);
  assert.deepEqual(
    told.map(({ name, data }) => [name, JSON.parse(data).sequence_number]),
    [
      ['response.created', 0],
      ['response.in_progress', 1],
      ['response.output_item.added', 2],
      ['response.function_call_arguments.delta', 3],
      ['response.function_call_arguments.delta', 4],
      ['response.completed', 5],
    ],
  );
});

test('a vendor that stores responses by default is asked not to, whatever the client leaves out', async () => {
  for (const stream of [false, true]) {
    gateway.upstream.script('openai', responsesAnswer(stream, { text: 'ok' }));
    await post('/responses', { model: 'test/openai', input: 'hi', stream });
    assert.equal((gateway.upstream.requests('openai').at(-1)!.json as Json).store, false);
  }
});

test('reasoning that could only be looked up in a store is left out, and what the upstream does not know of it', async () => {
  const input = [
    { role: 'user', content: 'hi' },
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'stored' }] },
    { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'mine', format: 'openai-responses-v1' },
    { type: 'reasoning', id: 'rs_3', summary: [], encrypted_content: 'foreign', format: 'anthropic-claude-v1' },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hello', annotations: [] }] },
    { role: 'user', content: 'go on' },
  ];
  gateway.upstream.script('openai', responsesAnswer(false, { text: 'ok' }));
  await post('/responses', { model: 'test/openai', input });
  const sent = (gateway.upstream.requests('openai').at(-1)!.json as Json).input;
  assert.deepEqual(sent, [
    input[0],
    { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'mine' },
    input[4],
    input[5],
  ]);
});

test('a cap below what the vendor takes is raised to it, and parameters that it refuses are left out', async () => {
  gateway.upstream.script('openai', responsesAnswer(false, { text: 'ok' }));
  await post('/responses', { model: 'test/openai', input: 'hi', max_output_tokens: 1, top_k: 3, temperature: 0.5 });
  const { max_output_tokens: cap, temperature, ...sent } = gateway.upstream.requests('openai').at(-1)!.json as Json;
  assert.deepEqual([cap, temperature, 'top_k' in sent], [16, 0.5, false]);
});

test('a content that a format has no place for goes out in the next one that the service speaks', async () => {
  const request = {
    model: 'test/openai',
    max_tokens: 100,
    messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: 'file_1' } }] }],
  };
  const refused = await post('/messages', request);
  assert.equal(refused.status, 400);
  gateway.upstream.script('openai', responsesAnswer(false, { text: 'read' }));
  const told = await post('/chat/completions', {
    model: 'test/responses',
    messages: [{ role: 'user', content: 'hi' }],
    stop: ['x'],
  });
  assert.equal(told.status, 400);
  assert.match(told.text, /stop/);
});

test('a whole answer that failed is an error with its status, never an empty answer', async () => {
  const error = { code: 'server_error', message: 'it broke' };
  gateway.upstream.script('responses', wholeOf({ ...responsesReply({}), status: 'failed', output: [], error }));
  const { status, text } = await post('/responses', { model: 'test/responses', input: 'hi' });
  assert.equal(status, 502);
  assert.equal(JSON.parse(text).error_type, 'provider_unavailable');
});

test('a whole answer that is not finished is no answer, whatever it holds so far', async () => {
  for (const state of ['in_progress', 'queued', 'cancelled']) {
    gateway.upstream.script('responses', wholeOf({ ...responsesReply({ text: 'so far' }), status: state }));
    const { status, text } = await post('/responses', { model: 'test/responses', input: 'hi' });
    assert.equal(status, 502, text);
    assert.equal(JSON.parse(text).error_type, 'provider_unavailable');
  }
});

test('an error in the middle of an answer keeps its text as incomplete and leaves its open call out', async () => {
  const error = { type: 'error', code: 'server_error', message: 'x' };
  const added = {
    type: 'response.output_item.added',
    output_index: 1,
    item: { type: 'message', id: 'm', role: 'assistant' },
  };
  const text = { type: 'response.output_text.delta', item_id: 'm', output_index: 1, content_index: 0, delta: 'hal' };
  const events = [CREATED, call(0, 'call_1'), piece(0, '{"t":'), added, text, error];
  gateway.upstream.script('responses', streamOf(events.map(responsesData)));
  const told = await post('/responses', { model: 'test/responses', input: 'hi', stream: true });
  const read = readServedStream('responses', told.text, 'finish');
  assert.equal(read.error!['code'], 'server_error');
  const last = JSON.parse(readServerSentEvents(told.text).at(-2)!.data);
  assert.equal(last.type, 'response.failed');
  assert.deepEqual(
    last.response.output.map((item: Json) => [item.type, item.status, item.content[0].text]),
    [['message', 'incomplete', 'hal']],
  );
});

test('a large number in the arguments keeps its digits on every way', async () => {
  const calls = [{ id: 'call_1', name: 'add', arguments: '{"n":12345678901234567890}' }];
  gateway.upstream.script('responses', responsesAnswer(false, { calls }));
  const { text } = await post('/responses', { model: 'test/responses', input: 'hi' });
  assert.equal(readServedWhole('responses', text).choices[0]!.calls[0]!.arguments, calls[0]!.arguments);
  gateway.upstream.script('responses', streamOf(responsesEvents({ calls })));
  const streamed = await post('/chat/completions', { ...chatBody, tools: CHAT_TOOLS });
  assert.equal(readServedStream('chat', streamed.text, 'finish').choices[0]!.calls[0]!.arguments, calls[0]!.arguments);
});
