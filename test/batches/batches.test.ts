/** `/batches` through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { connectOnce } from '../../src/testing/database/database.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf, inDatabase } from '../workspaces/control.ts';
import { batchesOf, chatBatch, type Json, scripted } from './batches-client.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) });
const { send, submitted, ended, refused } = batchesOf(gateway);

test('a batch runs, its results come in the order of its requests, and its usage is the sum of the ledger', async () => {
  const requests = Array.from({ length: 30 }, (_, n) =>
    scripted(`item-${n}`, {
      text: `word ${n}`,
      usage: { prompt_tokens: 10 + n, completion_tokens: n + 1, cached_tokens: 3 },
    }),
  );
  const made = await submitted(chatBatch(requests));
  assert.deepEqual(
    [made.status, made.request_counts, made.results, made.usage],
    ['validating', { total: 30, completed: 0, failed: 0 }, null, null],
  );
  const batch = await ended(made.id);
  assert.deepEqual([batch.status, batch.request_counts], ['completed', { total: 30, completed: 30, failed: 0 }]);
  let cost = 0;
  for (const [n, { custom_id: id, response, error }] of batch.results.entries()) {
    assert.deepEqual([id, error, response.status_code], [`item-${n}`, null, 200]);
    assert.equal(response.body.choices[0].message.content, `word ${n}`);
    assert.equal(response.body.id, response.request_id);
    assert.match(response.request_id, /^gen-batch-[0-9a-f]{32}$/);
    const { body: generation } = await send('GET', `/generation?id=${response.request_id}`);
    cost += generation.data.total_cost;
  }
  const { usage } = batch;
  assert.deepEqual(
    [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens, usage.prompt_tokens_details.cached_tokens],
    [735, 465, 1200, 90],
  );
  assert.ok(Math.abs(usage.cost - cost) < 1e-9 && cost > 0, `${usage.cost} ${cost}`);
  const download = await gateway.get(`/batches/${made.id}/results`);
  assert.equal(download.headers.get('content-type'), 'application/x-ndjson');
  const lines = (await download.text()).trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    batch.results,
  );
});

test('a download of results continues after the last result that the client has', async () => {
  const requests = Array.from({ length: 5 }, (_, n) => scripted(`item-${n}`, { text: `word ${n}` }));
  const [batch, other] = [await submitted(chatBatch(requests)), await submitted(chatBatch(requests))];
  await Promise.all([ended(batch.id), ended(other.id)]);
  const download = async (query = '') => (await gateway.get(`/batches/${batch.id}/results${query}`)).text();
  const whole = await download();
  let had = '';
  for (const line of whole.split(/(?<=\n)/)) {
    had += line;
    assert.equal(had + (await download(`?after=${JSON.parse(line).id}`)), whole);
  }
  const last = JSON.parse(whole.trimEnd().split('\n').at(-1)!).id;
  const never = ['x', '01', '5', '-1', '0.5', 'NaN', 'Infinity', '1e%2B21', '3000000000'].map(
    (n) => `${batch.id}_${n}`,
  );
  for (const after of [`${other.id}_1`, last.toUpperCase(), ...never, batch.id, 'x']) {
    await refused(send('GET', `/batches/${batch.id}/results?after=${after}`), 400, /^after is not the id of a result/);
  }
});

test('results that cannot be read are an error with a status, and not a download that breaks off', async () => {
  const { id } = await submitted(chatBatch([scripted('one', { text: 'word' })]));
  await ended(id);
  await inDatabase(gateway, ['alter table batch_items rename to batch_items_away']);
  try {
    for (const path of [`/batches/${id}`, `/batches/${id}/results`]) {
      const { status, body } = await send('GET', path);
      assert.deepEqual([status, body.error.code], [500, 500], path);
    }
  } finally {
    await inDatabase(gateway, ['alter table batch_items_away rename to batch_items']);
  }
  assert.equal((await ended(id)).results.length, 1);
});

test('items of every endpoint run, and a failed item has its error among the results of the others', async () => {
  const batches = {
    '/v1/messages': scripted('a', { text: 'hello' }).body,
    '/v1/responses': { input: JSON.stringify({ text: 'hello' }) },
  };
  for (const [endpoint, body] of Object.entries(batches)) {
    const failing = JSON.parse(JSON.stringify(body).replace('hello', 'x').replace('text\\"', 'unknown\\"'));
    const requests = [
      { custom_id: 'fails', body: failing },
      { custom_id: 'runs', body },
    ];
    const batch = await ended((await submitted({ endpoint, model: 'simulated/script', requests })).id);
    assert.deepEqual(batch.request_counts, { total: 2, completed: 1, failed: 1 }, endpoint);
    const [failed, ran] = batch.results;
    assert.deepEqual([failed.custom_id, failed.response, failed.error.error_type], ['fails', null, 'invalid_request']);
    assert.match(failed.error.message, /script/);
    assert.match(JSON.stringify(ran.response.body), /hello/, endpoint);
    assert.equal(ran.error, null);
  }
});

test('members may come in any order, and what is wrong with an item names the item and its custom_id', async () => {
  const wrong = [scripted('first'), { custom_id: 'sec"ond', body: { messages: [{ role: 'nobody', content: 'x' }] } }];
  const forwards = chatBatch(wrong);
  const { endpoint, model, requests } = forwards;
  for (const body of [forwards, { requests, model, endpoint }, { model, requests, endpoint }]) {
    await refused(send('POST', '/batches', body), 400, /requests\[1\] \(custom_id "sec\\"ond"\): messages\[0\]\.role/);
  }
  const backwards = { requests: [scripted('only', { text: 'back' })], provider: null, model, endpoint };
  const batch = await ended((await submitted(backwards)).id);
  assert.equal(batch.results[0].response.body.choices[0].message.content, 'back');
});

test('a batch that cannot run as it is asked is refused as a whole, and nothing of it is stored', async () => {
  const item = scripted('a');
  const of = (body: object, more: object = {}) =>
    chatBatch([{ custom_id: 'a', body: { ...item.body, ...body } }], more);
  const refusals: [unknown, number, RegExp][] = [
    ['{"endpoint":', 400, /not a complete JSON object/],
    ['[]', 400, /not valid JSON/],
    [chatBatch([]), 400, /requests must have at least one/],
    [{ model: 'simulated/script', requests: [item] }, 400, /endpoint is missing/],
    [{ endpoint: '/v1/chat/completions', requests: [item] }, 400, /model is missing/],
    [chatBatch([item], { endpoint: '/v1/rerank' }), 400, /endpoint must be one of/],
    [chatBatch([item], { model: 'no/model' }), 404, /no model "no\/model"/],
    [chatBatch([item], { completion_window: '1h' }), 400, /completion_window must be 24h/],
    [chatBatch([item], { input_file_id: 'file-x' }), 400, /input_file_id cannot be combined with (model|requests)/],
    [chatBatch([item], { provider: { sort: 'price' } }), 400, /provider\.sort is not supported/],
    [chatBatch([item], { provider: { only: ['nobody'] } }), 403, /^no allowed providers/],
    [
      chatBatch([item, scripted('b'), scripted('a')]),
      400,
      /requests\[2\]\.custom_id "a" is also that of requests\[0\]/,
    ],
    [chatBatch([{ body: item.body }]), 400, /requests\[0\]\.custom_id must be a text/],
    [chatBatch([{ custom_id: 'a' }]), 400, /requests\[0\]\.body must be an object/],
    [chatBatch([{ ...item, method: 'POST' }]), 400, /requests\[0\]\.method is not a member/],
    [of({ model: 'simulated/echo' }), 400, /model must be simulated\/script/],
    [of({ models: ['simulated/echo'] }), 400, /models is not supported/],
    [of({ stream: true }), 400, /stream must not be true/],
    [of({ provider: { only: ['x'] } }, { provider: {} }), 400, /provider must be given for the whole batch/],
    [
      of({
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }] }],
      }),
      400,
      /image content; a batch carries text only/,
    ],
  ];
  for (const [body, status, message] of refusals) await refused(send('POST', '/batches', body), status, message);
  const client = await connect(gateway.target);
  const { rows } = await client.query(
    `select (select count(*)::int from batch_items where batch_id not in (select id from batches)) as items,
      (select count(*)::int from batch_intakes) as intakes`,
  );
  await client.end();
  assert.deepEqual(rows, [{ items: 0, intakes: 0 }]);
});

test('batches are listed newest first, page by page, by state and time, for their own workspace only', async () => {
  const ids: string[] = [];
  for (const name of ['one', 'two', 'three']) ids.unshift((await submitted(chatBatch([scripted(name)]))).id);
  for (const id of ids) await ended(id);
  const first = (await send('GET', '/batches?limit=2')).body;
  assert.deepEqual(
    [first.object, first.data.map(({ id }: Json) => id), first.first_id, first.last_id, first.has_more],
    ['list', ids.slice(0, 2), ids[0], ids[1], true],
  );
  assert.equal(first.data[0].results, null);
  const second = (await send('GET', `/batches?limit=1&after=${first.last_id}`)).body;
  assert.deepEqual(second.data[0].id, ids[2]);
  const count = async (query: string) => (await send('GET', `/batches?limit=100&${query}`)).body.data.length;
  const all = await count('');
  assert.deepEqual(
    [
      await count('status=completed&status=expired'),
      await count('status=cancelled'),
      await count('created_after=2999-01-01'),
    ],
    [all, 0, 0],
  );
  assert.equal(await count('created_before=2999-01-01T00:00:00Z&created_after=2020-01-01'), all);
  assert.equal(await count('created_before=32472144000&created_after=1577836800'), all);
  assert.equal(await count('created_after=32472144000'), 0);
  const { created_at: shown } = first.data[0];
  const found = async (query: string) =>
    (await send('GET', `/batches?limit=100&${query}`)).body.data.map(({ id }: Json) => id);
  for (const time of [shown, new Date(shown * 1000).toISOString()]) {
    assert.equal((await found(`created_after=${time}`)).includes(ids[0]), false, 'both bounds are exclusive');
    assert.equal((await found(`created_before=${time}`)).includes(ids[0]), false);
  }
  const around = await found(`created_after=${shown - 1}&created_before=${shown + 1}`);
  assert.equal(around.includes(ids[0]), true);
  await refused(send('GET', '/batches?created_after=yesterday'), 400, /created_after must be/);
  await refused(send('GET', '/batches?after=x'), 400, /after is not the id/);

  const control = controlOf(gateway);
  const { id: workspace } = await control.made({ name: 'Others', slug: 'others' });
  const made = await control.call('POST', '/keys', { name: 'theirs', workspace_id: workspace });
  const theirs = batchesOf(gateway, made.body.key);
  assert.deepEqual((await theirs.send('GET', '/batches')).body.data, []);
  for (const [method, route] of [
    ['GET', ''],
    ['GET', '/results'],
    ['POST', '/cancel'],
    ['DELETE', ''],
  ] as const) {
    await theirs.refused(theirs.send(method, `/batches/${ids[0]}${route}`), 404, /no batch with this id/);
  }
  const own = await theirs.submitted(chatBatch([scripted('x')]));
  assert.equal((await theirs.ended(own.id)).status, 'completed');
  assert.equal((await control.call('DELETE', `/keys/${made.body.data.hash}`)).status, 200);
  const gone = await control.call('DELETE', `/workspaces/${workspace}`);
  assert.equal(gone.status, 200, JSON.stringify(gone.body));
});

test('cancelling keeps what is done, runs nothing more, and a final batch can be deleted', async () => {
  const requests = Array.from({ length: 40 }, (_, n) =>
    scripted(`item-${n}`, n < 3 ? { text: 'fast' } : { text: 'slow', delay_ms: { headers: 300 } }),
  );
  const { id } = await submitted(chatBatch(requests));
  await refused(send('DELETE', `/batches/${id}`), 409, /cancel it first/);
  await refused(send('GET', `/batches/${id}/results`), 409, /no results while it is/);
  for (;;) if ((await send('GET', `/batches/${id}`)).body.request_counts.completed > 0) break;
  const cancelling = await send('POST', `/batches/${id}/cancel`);
  assert.deepEqual([cancelling.status, cancelling.body.status], [200, 'cancelling']);
  assert.equal((await send('POST', `/batches/${id}/cancel`)).status, 200);
  const batch = await ended(id);
  assert.equal(batch.status, 'cancelled');
  const { completed, failed, total } = batch.request_counts;
  assert.ok(completed > 0 && failed > 0 && completed + failed === total, JSON.stringify(batch.request_counts));
  const errors = batch.results.filter(({ error }: Json) => error !== null);
  assert.deepEqual(new Set(errors.map(({ error }: Json) => error.type)), new Set(['batch_cancelled']));
  assert.deepEqual([batch.results.length, errors.length], [40, failed]);
  await refused(send('POST', `/batches/${id}/cancel`), 409, /is cancelled and cannot be/);
  assert.deepEqual((await send('DELETE', `/batches/${id}`)).body, {
    id,
    object: 'batch',
    deletion: { svc: 'deleted' },
  });
  await refused(send('GET', `/batches/${id}`), 404, /no batch/);
  const generation = batch.results.find(({ response }: Json) => response !== null).response.request_id;
  assert.equal((await send('GET', `/generation?id=${generation}`)).status, 200);
  const audit = await gateway.get('/audit?limit=100', MANAGEMENT_KEY);
  const entries = ((await audit.json()) as Json).data.filter(({ resource_id: of }: Json) => of === id);
  assert.deepEqual(entries.map(({ action }: Json) => action).toSorted(), [
    'batch.cancelled',
    'batch.created',
    'batch.deleted',
  ]);
});

test('a batch can be cancelled while its results are summed, and keeps all of them', async (t) => {
  const { id } = await submitted(chatBatch([scripted('one', { text: 'x' }), scripted('two', { text: 'y' })]));
  const { results, usage } = await ended(id);
  const [worker, other] = [await connectOnce(t, gateway.target), await connectOnce(t, gateway.target)];
  await worker.query('begin');
  await worker.query(`update batches set state = 'finalizing', finalized_at = null where id = $1`, [
    id.slice('batch_'.length),
  ]);
  const pending = send('POST', `/batches/${id}/cancel`);
  const waiting = 'select 1 from pg_locks where not granted';
  await until(async () => (await other.query(waiting)).rows.length > 0, 'the cancellation waits for the batch');
  await worker.query('commit');
  const { status, body } = await pending;
  assert.deepEqual([status, body.status], [200, 'cancelling'], JSON.stringify(body));
  const batch = await ended(id);
  assert.deepEqual([batch.status, batch.request_counts], ['cancelled', { total: 2, completed: 2, failed: 0 }]);
  assert.deepEqual([batch.results, batch.usage], [results, usage]);
});

test('a batch submitted again with its Idempotency-Key is the first one, at the same time or later', async () => {
  const body = JSON.stringify(chatBatch([scripted('once', { text: 'x' })]));
  const submit = async (text: string, key: string) => {
    const headers = { 'idempotency-key': key };
    const response = await gateway.post('/batches', text, headers);
    return { status: response.status, body: (await response.json()) as Json };
  };
  const answers = await Promise.all(Array.from({ length: 5 }, () => submit(body, 'key-1')));
  const ids = new Set(answers.map(({ status, body: batch }) => `${status} ${batch.id}`));
  assert.equal(ids.size, 1, [...ids].join());
  const { id } = answers[0]!.body;
  await ended(id);
  const later = await submit(body, 'key-1');
  assert.deepEqual([later.status, later.body.id, later.body.status], [202, id, 'completed']);
  await refused(submit(body.replace('once', 'twice'), 'key-1'), 422, /used for a batch with another body/);
  await refused(submit(body, 'x'.repeat(256)), 400, /Idempotency-Key must have/);
  assert.notEqual((await submit(body, 'key-2')).body.id, id);
  assert.equal((await send('DELETE', `/batches/${id}`)).status, 200);
  assert.notEqual((await submit(body, 'key-1')).body.id, id);
});
