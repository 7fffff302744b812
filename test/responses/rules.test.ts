/** Who sees a stored response, what is stored and for how long, and how a response that did not end well is shown. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { streamOf } from '../../src/testing/upstream/answers.ts';
import { responsesEvents } from '../../src/testing/upstream/responses-answers.ts';
import { startGuarded } from '../guardrails/guarded.ts';
import { controlOf, inDatabase, type Json } from '../workspaces/control.ts';
import { clientOf, startScene } from './scene.ts';

const { gateway, openai, script } = await startScene();
const control = controlOf(gateway);
const DAY_MS = 86_400_000;

const stored = async (body: Json = {}, client = openai): Promise<Json> => {
  script('chat', false, { text: 'the answer' });
  return client.responses.create({ model: 'test/chat', input: 'the question', store: true, ...body });
};

const rows = async (): Promise<Json[]> => {
  const client = await connect(gateway.target);
  const found = await client.query('select * from responses order by id');
  await client.end();
  return found.rows;
};
const ids = async () => (await rows()).map(({ id }) => id);

test('a request that does not ask for state stores nothing', async () => {
  const before = await ids();
  script('chat', false, { text: 'a' }, { text: 'a' });
  for (const body of [{}, { store: false, previous_response_id: null, background: false, conversation: null }]) {
    const { id } = (await openai.responses.create({ model: 'test/chat', input: 'hi', ...body } as Json)) as Json;
    await assert.rejects(openai.responses.retrieve(id), { status: 404 });
  }
  assert.deepEqual(await ids(), before);
});

test('a response that continues another may choose a tool that the earlier input has added', async () => {
  const tools = [{ type: 'function', name: 'find', parameters: { type: 'object', properties: {} } }];
  const input = [
    { type: 'additional_tools', role: 'developer', tools },
    { role: 'user', content: 'hi' },
  ];
  script('openai', false, { text: 'a' }, { text: 'b' });
  const first = await openai.responses.create({ model: 'test/openai', input, store: true } as Json);
  const choice = { type: 'function', name: 'find' };
  const next = { model: 'test/openai', input: 'on', previous_response_id: first.id, tool_choice: choice };
  await openai.responses.create(next as Json);
  assert.deepEqual((gateway.upstream.requests('openai').at(-1)!.json as Json).tool_choice, choice);
  const wrong = { ...next, tool_choice: { type: 'function', name: 'lose' } };
  await assert.rejects(openai.responses.create(wrong as Json), {
    status: 400,
    message: /tool_choice\.name must name a tool/,
  });
});

test('what is stored is encrypted', async () => {
  await stored({ input: 'canary-question', instructions: 'canary-instructions' });
  for (const row of await rows()) {
    for (const value of Object.values(row)) assert.doesNotMatch(String(value), /canary|the answer/);
  }
});

test('a stored response exists in its workspace only, and is deleted with it', async () => {
  const { id: workspaceId } = await control.made({ name: 'Theirs', slug: 'theirs' });
  const { token, hash } = await control.keyIn(workspaceId, 'theirs');
  const theirs = clientOf(gateway, token);
  const [own, other] = [await stored(), await stored({}, theirs)];
  for (const [client, id] of [
    [openai, other.id],
    [theirs, own.id],
  ] as const) {
    await assert.rejects(client.responses.retrieve(id), { status: 404 });
    await assert.rejects(client.responses.inputItems.list(id), { status: 404 });
    await assert.rejects(client.responses.delete(id), { status: 404 });
    const continued = client.responses.create({ model: 'test/chat', input: 'x', previous_response_id: id });
    await assert.rejects(continued, { status: 404 });
  }
  assert.equal((await theirs.responses.retrieve(other.id)).output_text, 'the answer');
  await control.call('DELETE', `/keys/${hash}`);
  const deleted = await control.call('DELETE', `/workspaces/${workspaceId}`);
  assert.equal(deleted.status, 200, JSON.stringify(deleted.body));
  const left = await ids();
  assert.deepEqual([left.includes(own.id), left.includes(other.id)], [true, false]);
});

test('a deletion is in the audit log', async () => {
  const { id } = await stored();
  await openai.responses.delete(id);
  const { body } = await control.call('GET', '/audit?action=response.deleted');
  assert.equal(body.data[0].resource_id, id, JSON.stringify(body));
});

test('a response that is continued lives as long as what continues it, and both expire', async (t) => {
  const own = await startGateway(t, { yaml: { retention: { responses_days: 7 } } });
  const client = clientOf(own);
  const create = (body: Json): Promise<Json> =>
    client.responses.create({ model: 'simulated/echo', store: true, ...body });
  const first = await create({ input: 'one' });
  const alone = await create({ input: 'alone' });
  own.clock.jump(5 * DAY_MS);
  const second = await create({ input: 'two', previous_response_id: first.id });
  own.clock.jump(5 * DAY_MS);
  await assert.rejects(client.responses.retrieve(alone.id), { status: 404 });
  await create({ input: 'three', previous_response_id: second.id, store: false });
  own.clock.jump(5 * DAY_MS);
  await assert.rejects(client.responses.retrieve(second.id), { status: 404 });
});

test('zero data retention refuses to store, and does not forbid to continue', async (t) => {
  const model = { data_policy: { zdr: true } };
  const scene = await startGuarded(t, { providers: { chat: { kind: 'openrouter', model } } });
  scene.gateway.upstream.script('chat', [{ ...streamOf([]), end: 'cut', repeat: true }]);
  const refused = async (pending: Promise<Json>, who: RegExp) => {
    const { status, body } = await pending;
    assert.equal(status, 403, JSON.stringify(body));
    assert.match(body.error.message, /^store must be false or absent/);
    assert.match(body.error.message, who);
  };
  const body = { model: 'test/chat', input: 'hi', store: true };
  const guarded = await scene.guarded({ enforce_zdr_other: true });
  await refused(guarded.post('/responses', body), /guardrail/);
  const elsewhere = await scene.guarded({ enforce_zdr_google: true });
  assert.notEqual((await elsewhere.post('/responses', body)).status, 403);
  await refused(elsewhere.post('/responses', { ...body, provider: { zdr: true } }), /provider\.zdr/);
  assert.notEqual((await guarded.post('/responses', { ...body, store: false })).status, 403);
});

test('guardrails see the joined input, and a redacted text is stored redacted', async () => {
  const guardrail = await control.call('POST', '/guardrails', {
    name: 'filters',
    content_filters: [
      { pattern: 'secret-[0-9]{4}', action: 'redact' },
      { pattern: 'forbidden', action: 'block' },
    ],
  });
  const key = await control.keyIn(undefined, 'filtered');
  const client = clientOf(gateway, key.token);
  const open = await stored({ input: 'this was forbidden later' }, client);
  const path = `/guardrails/${guardrail.body.data.id}/assignments/keys`;
  await control.call('POST', path, { key_hashes: [key.hash] });
  const redacted = await stored({ input: 'it is secret-1234' }, client);
  const { data } = await client.responses.inputItems.list(redacted.id);
  assert.doesNotMatch(JSON.stringify(data), /1234/);
  const before = await ids();
  for (const body of [{ input: 'x', previous_response_id: open.id }, { input: 'forbidden' }]) {
    await assert.rejects(client.responses.create({ model: 'test/chat', store: true, ...body }), { status: 403 });
  }
  assert.deepEqual(await ids(), before);
});

test('a refused request stores nothing', async () => {
  const before = await ids();
  await assert.rejects(openai.responses.create({ model: 'test/nowhere', input: 'hi', store: true }), { status: 400 });
  await assert.rejects(stored({ previous_response_id: 'resp_none' }), { status: 404 });
  for (const body of [{ conversation: 5 }, { previous_response_id: 5 }]) {
    await assert.rejects(stored(body), (error: Json) => {
      return error.status === 400 && error.message.includes(Object.keys(body)[0]);
    });
  }
  assert.deepEqual(await ids(), before);
});

const EVENTS = responsesEvents({ text: 'abcdef' });

test('a stream that breaks off is stored as failed, with what it said', async () => {
  gateway.upstream.script('openai', [streamOf(EVENTS.slice(0, -2), { end: 'cut' })]);
  const stream = await openai.responses.create({ model: 'test/openai', input: 'hi', store: true, stream: true });
  const events: Json[] = [];
  for await (const event of stream) events.push(event);
  assert.equal(events.at(-1).type, 'response.failed');
  const { id } = events[0].response;
  const shown: Json = await openai.responses.retrieve(id);
  assert.equal(shown.status, 'failed');
  assert.ok(shown.error.message.length > 0);
  assert.match(shown.output_text, /^abc/);
});

test('a stream whose client leaves is stored as cancelled, with what it said', async () => {
  const gate = 'leaving';
  gateway.upstream.script('openai', [streamOf([...EVENTS.slice(0, 6), { gate }])]);
  const stream = await openai.responses.create({ model: 'test/openai', input: 'hi', store: true, stream: true });
  let id = '';
  for await (const event of stream) {
    if (event.type === 'response.created') id = event.response.id;
    if (event.type === 'response.output_text.delta') break;
  }
  let shown: Json;
  await until(async () => {
    shown = await openai.responses.retrieve(id);
    return shown.status !== 'in_progress';
  }, 'the end of the response');
  gateway.upstream.open(gate);
  assert.equal(shown.status, 'cancelled');
  assert.match(shown.output_text, /^abc/);
});

test('a running response is shown as such, cannot be continued, and has failed once its process is dead', async () => {
  const gate = 'running';
  gateway.upstream.script('openai', [streamOf([...EVENTS.slice(0, 6), { gate }, ...EVENTS.slice(6)])]);
  const stream = await openai.responses.create({ model: 'test/openai', input: 'hi', store: true, stream: true });
  const iterator = stream[Symbol.asyncIterator]();
  const { id } = ((await iterator.next()).value as Json).response;
  assert.equal((await openai.responses.retrieve(id)).status, 'in_progress');
  await assert.rejects(stored({ previous_response_id: id }), { status: 400 });
  await inDatabase(gateway, [`update responses set claimed_until = now() - interval '1 second' where id = '${id}'`]);
  const lost: Json = await openai.responses.retrieve(id);
  assert.deepEqual([lost.status, lost.error.code], ['failed', 'server_error']);
  // It was only slow.
  gateway.upstream.open(gate);
  while (!(await iterator.next()).done);
  assert.equal((await openai.responses.retrieve(id)).status, 'completed');
});

test('a response that cannot be stored at its end says so', async () => {
  const gate = 'unstorable';
  gateway.upstream.script('openai', [streamOf([...EVENTS.slice(0, 6), { gate }, ...EVENTS.slice(6)])]);
  const stream = await openai.responses.create({ model: 'test/openai', input: 'hi', store: true, stream: true });
  const iterator = stream[Symbol.asyncIterator]();
  const first: Json = (await iterator.next()).value;
  assert.equal(first.response.store, true);
  await inDatabase(gateway, ['alter table responses rename column answer to elsewhere']);
  gateway.upstream.open(gate);
  let last: Json;
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) last = next.value;
  await inDatabase(gateway, ['alter table responses rename column elsewhere to answer']);
  assert.deepEqual([last.type, last.response.store], ['response.completed', false]);
});
