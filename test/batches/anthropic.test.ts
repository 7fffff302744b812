/** `/messages/batches` with Anthropic's SDK, unmodified. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { until } from '../../src/testing/clock/clock.ts';
import { connectOnce } from '../../src/testing/database/database.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { errorOf, messagesReply, wholeOf } from '../../src/testing/upstream/answers.ts';
import { controlOf } from '../workspaces/control.ts';
import { batchesOf, chatBatch, type Json, scripted } from './batches-client.ts';
import { halfCost, messageAnswer, startNative } from './native.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { yaml: { trusted_proxies: ['127.0.0.0/8'] }, providers: { native: { kind: 'messages' } } },
);
const clientOf = (apiKey: string, more: object = {}) =>
  new Anthropic({ baseURL: gateway.url, apiKey, authToken: null, maxRetries: 2, ...more });
const client = clientOf(INFERENCE_KEY);

type Params = Anthropic.Messages.BatchCreateParams.Request['params'];
const request = (custom_id: string, script: object = {}, more: object = {}) => ({
  custom_id,
  params: {
    model: 'simulated/script',
    max_tokens: 50,
    messages: [{ role: 'user', content: JSON.stringify(script) }],
    ...more,
  } as Params,
});

const endedBatch = (id: string) =>
  until(async () => {
    const batch = await client.messages.batches.retrieve(id);
    return batch.processing_status === 'ended' ? batch : undefined;
  }, `the message batch ${id} ends`);

async function resultsOf(id: string, of: Pick<Anthropic['messages']['batches'], 'results'> = client.messages.batches) {
  const found: Anthropic.Messages.MessageBatchIndividualResponse[] = [];
  for await (const result of await of.results(id)) found.push(result);
  return found;
}

async function refusal(pending: Promise<unknown>): Promise<InstanceType<typeof Anthropic.APIError>> {
  const error = await pending.then(
    () => assert.fail('it was accepted'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof Anthropic.APIError, String(error));
  return error;
}

test('a message batch runs from its creation to its results, with a model for each request', async () => {
  const made = await client.messages.batches.create({
    requests: [
      request('first', { text: 'one', usage: { prompt_tokens: 5, completion_tokens: 2 } }),
      request('second', {}, { model: 'simulated/echo', messages: [{ role: 'user', content: 'two' }] }),
      request('third', { unknown: true }),
    ],
  });
  assert.match(made.id, /^msgbatch_[0-9a-f]{32}$/);
  assert.deepEqual(
    [made.type, made.processing_status, made.results_url, made.ended_at, made.archived_at, made.cancel_initiated_at],
    ['message_batch', 'in_progress', null, null, null, null],
  );
  assert.deepEqual(made.request_counts, { processing: 3, succeeded: 0, errored: 0, canceled: 0, expired: 0 });
  assert.equal(Date.parse(made.expires_at) - Date.parse(made.created_at), 24 * 3_600_000);

  const batch = await endedBatch(made.id);
  assert.deepEqual(batch.request_counts, { processing: 0, succeeded: 2, errored: 1, canceled: 0, expired: 0 });
  assert.ok(Date.parse(batch.ended_at!) >= Date.parse(batch.created_at));
  assert.equal(batch.results_url, `${gateway.api}/messages/batches/${made.id}/results`);
  const [first, second, third] = await resultsOf(made.id);
  assert.deepEqual([first?.custom_id, second?.custom_id, third?.custom_id], ['first', 'second', 'third']);
  assert.ok(first?.result.type === 'succeeded' && second?.result.type === 'succeeded');
  const [text] = first.result.message.content;
  assert.ok(text?.type === 'text' && text.text === 'one');
  assert.deepEqual([first.result.message.usage.input_tokens, first.result.message.usage.output_tokens], [5, 2]);
  assert.equal(second.result.message.model, 'simulated/echo');
  assert.ok(third?.result.type === 'errored');
  const { error } = third.result;
  assert.deepEqual([error.type, error.error.type], ['error', 'invalid_request_error']);
  assert.match(error.error.message, /script/);
  assert.match(String(error.request_id), /^gen-/);

  assert.deepEqual(await client.messages.batches.delete(made.id), { id: made.id, type: 'message_batch_deleted' });
  const gone = await refusal(client.messages.batches.retrieve(made.id));
  assert.deepEqual([gone.status, (gone.error as Json).error.type], [404, 'not_found_error']);
  const audit = (await (await gateway.get('/audit?limit=100', MANAGEMENT_KEY)).json()) as Json;
  const own = audit.data.filter(({ resource_id: id }: Json) => id.slice(-32) === made.id.slice(-32));
  assert.deepEqual(own.map(({ action }: Json) => action).toSorted(), ['batch.created', 'batch.deleted']);
});

test('the beta client works alike, and its beta features reach the provider of each request', async () => {
  gateway.upstream.script('native', [{ ...wholeOf(messagesReply({ text: 'yes' })), repeat: true }]);
  const { batches } = client.beta.messages;
  const betas = ['context-1m-2025-08-07' as const];
  const { id } = await batches.create({ betas, requests: [request('a', {}, { model: 'test/native' })] });
  await endedBatch(id);
  assert.equal((await batches.retrieve(id, { betas })).request_counts.succeeded, 1);
  const listed: string[] = [];
  for await (const batch of batches.list({ limit: 100, betas })) listed.push(batch.id);
  assert.ok(listed.includes(id));
  const [result] = await resultsOf(id, batches as Json);
  assert.equal(result?.result.type, 'succeeded');
  assert.match(String(gateway.upstream.requests('native').at(-1)?.headers['anthropic-beta']), /context-1m-2025-08-07/);
  assert.equal((await batches.delete(id)).type, 'message_batch_deleted');
});

test('a request that cannot run refuses the batch, with its position, its field and its custom_id', async () => {
  const create = (requests: unknown, more: object = {}) =>
    client.messages.batches.create({ requests, ...more } as Anthropic.Messages.BatchCreateParams);
  const fine = request('fine');
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } };
  const refusals: [unknown, number, RegExp, object?][] = [
    [[], 400, /requests must have at least one request/],
    [undefined, 400, /requests must have at least one request/],
    ['x', 400, /requests must be a list/],
    [[fine], 400, /model is not a member of a message batch/, { model: 'simulated/script' }],
    [[fine, request('b', {}, { max_tokens: 'x' })], 400, /^requests\.1\.params\.max_tokens must .*\(custom_id "b"\)$/],
    [[fine, request('b', {}, { messages: [{ role: 'x' }] })], 400, /^requests\.1\.params\.messages\[0\]\.\w+ .*"b"/],
    [[request('b', {}, { stream: true })], 400, /^requests\.0\.params\.stream must not be true.*"b"/],
    [[request('b', {}, { model: undefined })], 400, /^requests\.0\.params\.model must be a text.*"b"/],
    [[request('b', {}, { model: 'no/model' })], 404, /^requests\.0\.params\.model: there is no model "no\/model".*"b"/],
    [[request('b', {}, { messages: [{ role: 'user', content: [image] }] })], 400, /^requests\.0\.params: .*image.*"b"/],
    [[fine, request('fine')], 400, /^requests\.1\.custom_id "fine" is also that of requests\.0/],
    [[{ params: fine.params }], 400, /^requests\.0\.custom_id must be a text/],
    [[{ ...fine, custom_id: '' }], 400, /^requests\.0\.custom_id must be a text/],
    [[{ ...fine, custom_id: 7 }], 400, /^requests\.0\.custom_id must be a text/],
    [[{ custom_id: 'a' }], 400, /^requests\.0\.params must be an object/],
    [[{ ...fine, body: {} }], 400, /^requests\.0\.body is not a member/],
  ];
  for (const [requests, status, message, more] of refusals) {
    const error = await refusal(create(requests, more));
    const told = error.error as Json;
    assert.equal(error.status, status, JSON.stringify(told));
    assert.match(told.error.message, message);
    assert.deepEqual(
      [told.type, told.error.type],
      ['error', status === 404 ? 'not_found_error' : 'invalid_request_error'],
    );
    assert.equal(error.requestID, told.request_id);
  }
  const wrongKey = await refusal(clientOf('sk-wrong').messages.batches.list().then());
  assert.deepEqual([wrongKey.status, (wrongKey.error as Json).error.type], [401, 'authentication_error']);
});

test('custom_ids are compared exactly, and no name is special', async () => {
  const names = ['a', 'A', 'a ', '__proto__', 'constructor', 'ä', '🌤'];
  const { id } = await client.messages.batches.create({
    requests: names.map((name) => request(name, { text: `for ${name}` })),
  });
  await endedBatch(id);
  const found = await resultsOf(id);
  assert.deepEqual(
    found.map(({ custom_id, result }) => [custom_id, (result as Json).message.content[0].text]),
    names.map((name) => [name, `for ${name}`]),
  );
});

test('a batch that is cancelled keeps what is done and names the requests that did not run', async () => {
  const requests = Array.from({ length: 40 }, (_, n) =>
    request(`item-${n}`, n < 3 ? { text: 'fast' } : { text: 'slow', delay_ms: { headers: 300 } }),
  );
  const { id } = await client.messages.batches.create({ requests });
  for (const early of [() => client.messages.batches.delete(id), () => resultsOf(id)]) {
    const error = await early().then(
      () => assert.fail('it was accepted'),
      (thrown: Error) => thrown,
    );
    assert.match(error.message, /cancel it first|No batch `results_url`/);
  }
  const unfinished = await gateway.get(`/messages/batches/${id}/results`);
  assert.deepEqual([unfinished.status, unfinished.headers.get('x-should-retry')], [409, 'false']);
  assert.equal(((await unfinished.json()) as Json).type, 'error');
  const native = batchesOf(gateway);
  const nativeId = id.replace('msgbatch_', 'batch_');
  await until(
    async () => (await native.send('GET', `/batches/${nativeId}`)).body.request_counts.completed > 0,
    'an item ran',
  );
  const canceling = await client.messages.batches.cancel(id);
  assert.deepEqual([canceling.processing_status, canceling.request_counts.processing], ['canceling', 40]);
  assert.ok(canceling.cancel_initiated_at);
  const batch = await endedBatch(id);
  assert.equal(batch.cancel_initiated_at, canceling.cancel_initiated_at);
  const { succeeded, canceled, ...others } = batch.request_counts;
  assert.deepEqual([succeeded + canceled, others], [40, { processing: 0, errored: 0, expired: 0 }]);
  assert.ok(succeeded > 0 && canceled > 0, JSON.stringify(batch.request_counts));
  const types = (await resultsOf(id)).map(({ result }) => result.type);
  assert.deepEqual([...new Set(types)].toSorted(), ['canceled', 'succeeded']);
  assert.equal(types.filter((type) => type === 'canceled').length, canceled);
  const again = await refusal(client.messages.batches.cancel(id));
  assert.deepEqual([again.status, (again.error as Json).error.type], [409, 'invalid_request_error']);
});

test('a cancellation that comes while the last requests end is accepted', async (t) => {
  const { id } = await client.messages.batches.create({ requests: [request('one')] });
  await endedBatch(id);
  const uuid = id.replace('msgbatch_', '');
  const [worker, other] = [await connectOnce(t, gateway.target), await connectOnce(t, gateway.target)];
  const become = (state: string) => worker.query('update batches set state = $2 where id = $1', [uuid, state]);
  await become('validating');
  await worker.query('begin');
  await become('finalizing');
  const pending = client.messages.batches.cancel(id);
  const waiting = `select 1 from pg_locks where not granted`;
  await until(async () => (await other.query(waiting)).rows.length > 0, 'the cancellation waits for the batch');
  await worker.query('commit');
  const { processing_status, cancel_initiated_at } = await pending;
  assert.deepEqual([processing_status, cancel_initiated_at], ['in_progress', null]);
  await become('completed');
});

test('batches are listed newest first, forwards and backwards, each once, and only those of this API', async () => {
  const control = controlOf(gateway);
  const { id: workspace } = await control.made({ name: 'Lists', slug: 'lists' });
  const { body } = await control.call('POST', '/keys', { name: 'lists', workspace_id: workspace });
  const { batches } = clientOf(body.key).messages;
  const empty = await batches.list();
  assert.deepEqual([empty.data, empty.has_more, empty.first_id, empty.last_id], [[], false, null, null]);
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.unshift((await batches.create({ requests: [request('a')] })).id);
  const native = batchesOf(gateway, body.key);
  const other = await native.submitted(chatBatch([scripted('a')]));
  const walk = async (query: object) => {
    const found: string[] = [];
    for await (const { id } of batches.list({ limit: 2, ...query })) found.push(id);
    return found;
  };
  assert.deepEqual(await walk({}), ids);
  assert.deepEqual(await walk({ after_id: ids[1] }), ids.slice(2));
  const page = await batches.list({ limit: 2, before_id: ids[4]! });
  assert.deepEqual([page.data.map(({ id }) => id), page.has_more, page.first_id], [ids.slice(2, 4), true, ids[2]]);
  // The SDK goes on backwards, page by page.
  assert.deepEqual((await walk({ before_id: ids[4] })).toSorted(), ids.slice(0, 4).toSorted());
  const last = await batches.list({ limit: 2, after_id: ids[2]! });
  assert.deepEqual([last.data.length, last.has_more], [2, false]);
  for (const query of [{ limit: 0 }, { limit: 1001 }, { after_id: 'x' }, { after_id: ids[0]!, before_id: ids[1]! }]) {
    assert.equal((await refusal(batches.list(query).then())).status, 400, JSON.stringify(query));
  }
  const foreign = await refusal(batches.retrieve(other.id.replace('batch_', 'msgbatch_')));
  assert.equal(foreign.status, 404);
  for (const of of [
    (id: string) => client.messages.batches.retrieve(id),
    (id: string) => client.messages.batches.cancel(id),
    (id: string) => client.messages.batches.delete(id),
  ]) {
    assert.equal((await refusal(of(ids[0]!))).status, 404, 'of another workspace');
  }
  const all = (await native.send('GET', '/batches')).body.data.map(({ model }: Json) => model);
  assert.deepEqual(all, ['simulated/script', null, null, null, null, null]);
});

test('two batches that run at once with the same custom_ids do not mix up their answers', async () => {
  const make = (name: string) =>
    client.messages.batches.create({
      requests: Array.from({ length: 10 }, (_, n) => request(`${n}`, { text: `${name} ${n}` })),
    });
  const made = await Promise.all([make('A'), make('B')]);
  for (const [n, { id }] of made.entries()) {
    await endedBatch(id);
    const texts = (await resultsOf(id)).map(({ custom_id, result }) => [
      custom_id,
      (result as Json).message.content[0].text,
    ]);
    assert.deepEqual(
      texts.toSorted(),
      Array.from({ length: 10 }, (_, m) => [`${m}`, `${'AB'[n]} ${m}`]),
    );
  }
});

test('behind a proxy the URL of the results is the one that the client can reach', async () => {
  const { id } = await client.messages.batches.create({ requests: [request('a')] });
  await endedBatch(id);
  const defaultHeaders = {
    'x-forwarded-host': 'gate.test',
    'x-forwarded-proto': 'https',
    'x-forwarded-prefix': '/llm',
  };
  const { results_url: url } = await clientOf(INFERENCE_KEY, { defaultHeaders }).messages.batches.retrieve(id);
  assert.equal(url, `https://gate.test/llm/api/v1/messages/batches/${id}/results`);
});

test('an answer over several lines is one line of the results', async () => {
  const pretty = JSON.stringify(messagesReply({ text: 'two\nlines' }), undefined, 2).replaceAll('\n', '\r\n');
  gateway.upstream.script('native', [wholeOf(pretty), errorOf('messages', 400, 'not\nthis')]);
  const requests = ['a', 'b'].map((name) => request(name, {}, { model: 'test/native' }));
  const { id } = await client.messages.batches.create({ requests });
  await endedBatch(id);
  const found = await resultsOf(id);
  assert.deepEqual(found.map(({ result }) => result.type).toSorted(), ['errored', 'succeeded']);
  const succeeded = found.find(({ result }) => result.type === 'succeeded')!;
  assert.equal((succeeded.result as Json).message.content[0].text, 'two\nlines');
});

test('requests for models of Anthropic run in its own batch interface, the others of the same batch one by one', async (t) => {
  const { vendor, gateway: own } = await startNative(t, 'anthropic');
  vendor.answer = messageAnswer;
  const there = new Anthropic({ baseURL: own.url, apiKey: INFERENCE_KEY, authToken: null }).beta.messages.batches;
  const hello = (text: string) => [{ role: 'user', content: text }];
  const { id } = await there.create({
    betas: ['context-1m-2025-08-07'],
    requests: [
      request('native', {}, { model: 'test/native', messages: hello('one') }),
      request('direct', {}, { model: 'simulated/echo', messages: hello('two') }),
      request('again', {}, { model: 'test/native', messages: hello('three') }),
    ],
  });
  const batch = await batchesOf(own).ended(id.replace('msgbatch_', 'batch_'));
  assert.deepEqual([batch.model, batch.request_counts], [null, { total: 3, completed: 3, failed: 0 }]);
  const found = (await resultsOf(id, there as Json)).map(({ custom_id, result }) => [
    custom_id,
    (result as Json).message.content[0].text,
    (result as Json).message.usage.service_tier,
  ]);
  assert.deepEqual(
    found.map(([name, text]) => [name, text]),
    [
      ['native', 're: one'],
      ['direct', 'two'],
      ['again', 're: three'],
    ],
  );
  assert.deepEqual([found[0]![2], found[2]![2]], ['batch', 'batch']);
  const [sent, ...others] = vendor.requests.filter(({ method }) => method === 'POST');
  assert.deepEqual([JSON.parse(String(sent?.body)).requests.length, others], [2, []]);
  assert.match(String(sent?.headers['anthropic-beta']), /context-1m-2025-08-07/);
  const direct = batch.results[1].response.body.usage.cost as number;
  assert.ok(Math.abs(batch.usage.cost - direct - halfCost(['one', 'three'])) < 1e-9, String(batch.usage.cost));
});

test('a batch names at most 100 models, and each is routed once before the batch is accepted', async (t) => {
  const models = Array.from({ length: 101 }, (_, n) => ({
    id: `test/m${n}`,
    upstream_id: `m${n}`,
    context_length: 9_000,
  }));
  const own = await startGateway(t, { providers: { many: { kind: 'messages', models } } });
  const { batches } = new Anthropic({ baseURL: own.url, apiKey: INFERENCE_KEY, authToken: null }).messages;
  const requests = models.map(({ id }, n) => request(`${n}`, {}, { model: id }));
  const error = await refusal(batches.create({ requests }));
  assert.equal(error.status, 400);
  assert.match(
    error.message,
    /requests\.100\.params\.model is one too many: .* at most 100 models.*custom_id \\"100\\"/,
  );
  assert.equal((await batches.create({ requests: requests.slice(0, 100) })).request_counts.processing, 100);
});
