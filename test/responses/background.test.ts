/** `background: true` with OpenAI's SDK: fetched, streamed from any event on, in any process, and cancelled. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { head, RawClient } from '../../src/testing/clients/raw-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { streamOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import { responsesEvents } from '../../src/testing/upstream/responses-answers.ts';
import { controlOf, inDatabase, type Json } from '../workspaces/control.ts';
import { clientOf, startScene } from './scene.ts';

/** Both decrypt what the other has stored. */
const env = { GATEHOUSE_KEK: Buffer.alloc(32, 1).toString('base64') };
const { gateway, openai, script } = await startScene({ env });
/** Serves the same installation, and runs what it takes. */
const other = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    ...{ env, target: gateway.target },
    providers: {
      chat: { kind: 'openrouter', base_url: gateway.upstream.script('chat', []) },
      openai: { kind: 'openai', base_url: gateway.upstream.script('openai', []) },
    },
  },
);
const elsewhere = clientOf(other);
const control = controlOf(gateway);

const EVENTS = responsesEvents({ text: 'abcdef' });
const over = (id: string, client = openai): Promise<Json> =>
  until(async () => {
    const shown = await client.responses.retrieve(id);
    return shown.status !== 'queued' && shown.status !== 'in_progress' && shown;
  }, 'the end of the response');
const all = async (stream: AsyncIterable<ResponseStreamEvent>): Promise<Json[]> => {
  const events: Json[] = [];
  for await (const event of stream) events.push(event);
  return events;
};

test('a response in the background is queued at once, and can be fetched and continued later', async () => {
  const sent = script('chat', false, { text: 'later' }, { text: 'and on' });
  const queued = await openai.responses.create({
    model: 'test/chat',
    input: 'one',
    background: true,
    metadata: { a: 'b' },
  });
  assert.deepEqual([queued.status, queued.background, (queued as Json).store], ['queued', true, true]);
  const done = await over(queued.id, elsewhere);
  assert.deepEqual([done.status, done.output_text, done.background], ['completed', 'later', true]);
  assert.deepEqual(done.metadata, { a: 'b' });
  const row = await rowOf(gateway, queued.id);
  assert.ok((row as Json).total_cost > 0);
  const next = await openai.responses.create({ model: 'test/chat', input: 'two', previous_response_id: queued.id });
  assert.equal(next.output_text, 'and on');
  assert.equal(sent()[1].messages.length, 3);
});

test('a stream in the background is replayed from any event and then continues live, in every process', async () => {
  const gate = 'more';
  gateway.upstream.script('openai', [streamOf([...EVENTS.slice(0, 5), { gate }, ...EVENTS.slice(5)])]);
  const request = { model: 'test/openai', input: 'hi', background: true, stream: true } as const;
  const stream = await openai.responses.create(request);
  const seen: Json[] = [];
  for await (const event of stream) {
    seen.push(event);
    if (event.type === 'response.output_item.added') break;
  }
  assert.deepEqual(
    seen.slice(0, 3).map(({ type }) => type),
    ['response.created', 'response.queued', 'response.in_progress'],
  );
  const { id } = seen[0].response;
  // Its client has disconnected; the response continues.
  const replays = [openai, elsewhere].map(async (client) => all(await client.responses.retrieve(id, { stream: true })));
  const from = seen.at(-1).sequence_number;
  const resumed = elsewhere.responses.retrieve(id, { stream: true, starting_after: from });
  gateway.upstream.open(gate);
  const [whole, again] = await Promise.all(replays);
  assert.deepEqual(whole, again);
  assert.deepEqual(
    whole!.map(({ sequence_number: number }) => number),
    [...whole!.keys()],
  );
  assert.deepEqual(whole!.slice(0, seen.length), seen);
  assert.deepEqual(await all(await resumed), whole!.slice(from + 1));
  const last = whole!.at(-1);
  assert.equal(last.type, 'response.completed');
  const done = await over(id);
  assert.deepEqual(done.output, last.response.output);
  assert.deepEqual(await all(await openai.responses.retrieve(id, { stream: true })), whole);
  for (const beyond of [0, 1, 100]) {
    const after = last.sequence_number + beyond;
    assert.deepEqual(await all(await openai.responses.retrieve(id, { stream: true, starting_after: after })), []);
  }
  await assert.rejects(openai.responses.retrieve(id, { stream: true, starting_after: 2 ** 31 }), {
    status: 400,
    message: /starting_after/,
  });
  // Not the time at which the provider began.
  const times = new Set(whole!.filter(({ response }) => response).map(({ response }) => response.created_at));
  assert.deepEqual([...times], [done.created_at]);
  assert.notEqual(done.created_at, 1_760_000_000);
});

test('every event of a response has the time at which its request came, however long its body took', async () => {
  gateway.upstream.script('openai', [streamOf(EVENTS)]);
  const body = JSON.stringify({ model: 'test/openai', input: 'hi', background: true, stream: true });
  const client = await RawClient.open(Number(new URL(gateway.url).port));
  const from = [`Authorization: Bearer ${INFERENCE_KEY}`, 'Content-Type: application/json', 'Expect: 100-continue'];
  await client.send(head(['POST /api/v1/responses HTTP/1.1', ...from, `Content-Length: ${body.length}`]));
  assert.equal((await client.response()).status, 100);
  gateway.clock.jump(2_000);
  await client.send(body);
  const sent = await client.read('data: [DONE]');
  client.leave();
  const [, id] = /"id":"(resp_[^"]+)"/.exec(sent)!;
  const times = new Set([...sent.matchAll(/"created_at":(\d+)/g)].map(([, time]) => Number(time)));
  assert.deepEqual([...times], [(await over(id!)).created_at]);
});

test('a client that reads slowly gets every event and delays no other client', async () => {
  const long = responsesEvents({ text: 'x'.repeat(60) }).map((event) => event.replaceAll('xxx', 'y'.repeat(50_000)));
  gateway.upstream.script('openai', [streamOf(long)]);
  const request = { model: 'test/openai', input: 'hi', background: true };
  const slow = await gateway.post('/responses', { ...request, stream: true });
  const id = slow.headers.get('x-generation-id')!.replace('gen-', 'resp_');
  assert.equal((await over(id)).status, 'completed');
  const numbers = [...(await slow.text()).matchAll(/"sequence_number":(\d+)}\n/g)].map(([, number]) => Number(number));
  assert.ok(numbers.length > 20);
  assert.deepEqual(numbers, [...numbers.keys()]);
});

test('a background request has the headers of a generation, streamed or not', async () => {
  script('chat', true, { text: 'a' });
  const streamed = await openai.responses
    .create({ model: 'test/chat', input: 'hi', background: true, stream: true })
    .withResponse();
  const events = await all(streamed.data);
  script('chat', false, { text: 'a' });
  const whole = await openai.responses.create({ model: 'test/chat', input: 'hi', background: true }).withResponse();
  for (const [{ response }, id] of [
    [streamed, events[0].response.id],
    [whole, whole.data.id],
  ] as const) {
    assert.equal(response.headers.get('x-generation-id'), id.replace('resp_', 'gen-'));
  }
  await over(whole.data.id);
});

test('a running response is cancelled from any process: its call ends, and it keeps its output', async () => {
  const before = gateway.upstream.requests('openai').length;
  gateway.upstream.script('openai', [streamOf(EVENTS.slice(0, 6), { end: 'stall' })]);
  const request = { model: 'test/openai', input: 'hi', background: true, stream: true } as const;
  const stream = await openai.responses.create(request);
  let id = '';
  let last: Json;
  for await (const event of stream) {
    last = event;
    if (event.type === 'response.created') id = event.response.id;
    if (event.type === 'response.output_text.delta') {
      for (const client of [elsewhere, openai]) assert.equal((await client.responses.cancel(id)).status, 'cancelled');
    }
  }
  assert.deepEqual([last.type, last.response.status], ['response.incomplete', 'cancelled']);
  const seen = { stream: true, starting_after: last.sequence_number } as const;
  assert.deepEqual(await all(await openai.responses.retrieve(id, seen)), []);
  const call = await gateway.upstream.request('openai', before + 1);
  await until(() => call.closedEarlyAt !== undefined, 'the call to be closed');
  const shown: Json = await until(async () => {
    const response = await openai.responses.retrieve(id);
    return response.output.length > 0 && response;
  }, 'the output');
  assert.equal(shown.status, 'cancelled');
  assert.match(shown.output_text, /^abc/);
  assert.equal((await rowOf(gateway, id))['cancelled'], true);
});

test('what is not in the background cannot be cancelled or streamed again, and a response that has ended stays as it is', async () => {
  script('chat', false, { text: 'x' }, { text: 'y' });
  const { id } = await openai.responses.create({ model: 'test/chat', input: 'hi', store: true });
  await assert.rejects(openai.responses.cancel(id), { status: 400 });
  await assert.rejects(openai.responses.retrieve(id, { stream: true }), { status: 400 });
  await assert.rejects(openai.responses.cancel('resp_none'), { status: 404 });
  const queued = await openai.responses.create({ model: 'test/chat', input: 'hi', background: true });
  await over(queued.id);
  assert.equal((await openai.responses.cancel(queued.id)).status, 'completed');
  await assert.rejects(openai.responses.retrieve(queued.id, { stream: true }), { status: 400 });
});

test('a response that cannot be answered has failed with the reason', async () => {
  gateway.upstream.script('chat', [wholeOf({ error: { message: 'no such thing' } }, { status: 400 })]);
  const asked = await openai.responses.create({ model: 'test/chat', input: 'hi', background: true });
  const failed = await over(asked.id);
  assert.equal(failed.status, 'failed');
  assert.match(failed.error.message, /no such thing/);
});

test('bad requests for the background are refused at once', async () => {
  for (const [more, path] of [
    [{ store: false }, 'store'],
    [{ input: [{ role: 'user', content: [{ type: 'input_text' }] }] }, 'input[0].content[0].text'],
    [{ previous_response_id: 'resp_none' }, 'previous_response_id'],
  ] as [Json, string][]) {
    const asked = openai.responses.create({ model: 'test/chat', input: 'hi', background: true, ...more });
    await assert.rejects(asked, (error: Json) => error.status < 500 && error.message.includes(path));
  }
});

test('a response whose process dies has failed, and ends its streams so', async () => {
  gateway.upstream.script('openai', [streamOf(EVENTS.slice(0, 6), { end: 'stall' })]);
  const request = { model: 'test/openai', input: 'hi', background: true, stream: true } as const;
  const stream = await openai.responses.create(request);
  let last: Json;
  let id = '';
  for await (const event of stream) {
    last = event;
    if (event.type === 'response.created') id = event.response.id;
    if (event.type !== 'response.output_text.delta') continue;
    // Another process's, for all that the database knows.
    await inDatabase(gateway, [
      `update responses set claim = gen_random_uuid(), claimed_until = now() - interval '1 s' where id = '${id}'`,
    ]);
    gateway.clock.jump(6_000);
  }
  assert.equal(last.type, 'response.failed');
  assert.match(last.response.error.message, /process .* has ended/);
  const tried = await openai.responses.retrieve(id);
  assert.equal(tried.status, 'failed');
});

test('limits and budgets refuse a response before it is stored, and count it once', async () => {
  const count = async (): Promise<number> => {
    const client = await connect(gateway.target);
    const { rows } = await client.query<{ count: number }>('select count(*)::int as count from responses');
    await client.end();
    return rows[0]!.count;
  };
  const poor = await control.keyIn(undefined, 'poor', { limit: 0.000001 });
  const slow = await control.keyIn(undefined, 'slow', { rate_limits: { requests_per_day: 2 } });
  const request = { model: 'test/chat', input: 'hi', background: true } as const;
  const before = await count();
  await assert.rejects(clientOf(gateway, poor.token).responses.create(request), { status: 402 });
  await assert.rejects(openai.responses.create({ ...request, model: 'test/none' }), { status: 400 });
  assert.equal(await count(), before);
  const limited = clientOf(gateway, slow.token);
  script('chat', false, { text: 'one' }, { text: 'two' });
  for (const text of ['one', 'two']) {
    const { id } = await limited.responses.create(request);
    assert.equal((await over(id, limited)).output_text, text);
  }
  await assert.rejects(limited.responses.create(request), { status: 429 });
  assert.equal(await count(), before + 2);
});
