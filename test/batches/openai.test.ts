/** Batches through OpenAI's SDK, unmodified: input, output and error files. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type OpenAI from 'openai';
import { until } from '../../src/testing/clock/clock.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { corpusMissing, recordings } from '../../src/testing/recordings/corpus.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';
import { controlOf } from '../workspaces/control.ts';
import { batchesOf, chatBatch, type Json, scripted } from './batches-client.ts';
import { chatAnswer, startNative } from './native.ts';
import { CHAT, created, ended, jsonl, lineOf, linesOf, MODEL, openaiOf, uploaded } from './openai-client.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) });
const control = controlOf(gateway);
const { send } = batchesOf(gateway);
const openai = openaiOf(gateway);

test('a batch made from a file runs, and its results are in an output and an error file', async () => {
  const lines = [
    lineOf('a', { text: 'first', usage: { prompt_tokens: 10, completion_tokens: 2, cached_tokens: 4 } }),
    lineOf('fails', { unknown: 1 }),
    lineOf('A', { text: 'Grüße, 世界', usage: { prompt_tokens: 20, completion_tokens: 3 } }),
  ];
  const made = await created(openai, lines, { metadata: { team: 'research', 'key 2': '' } });
  assert.deepEqual(
    [made.object, made.status, made.endpoint, made.completion_window, made.metadata, made.errors, made.output_file_id],
    ['batch', 'validating', CHAT, '24h', { team: 'research', 'key 2': '' }, null, null],
  );
  assert.equal(made.expires_at! - made.created_at, 86_400);
  const batch = await ended(openai, made.id);
  assert.equal(batch.status, 'completed');
  assert.equal(batch.model, MODEL);
  const times = [batch.created_at, batch.in_progress_at!, batch.finalizing_at!, batch.completed_at!];
  assert.deepEqual(
    times,
    times.toSorted((one, other) => one - other),
  );
  assert.deepEqual(
    [batch.failed_at, batch.expired_at, batch.cancelling_at, batch.cancelled_at],
    [null, null, null, null],
  );
  assert.deepEqual(batch.usage, {
    input_tokens: 30,
    input_tokens_details: { cached_tokens: 4 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 35,
  });
  const { output, errors } = await linesOf(openai, batch, ['a', 'fails', 'A']);
  assert.deepEqual(
    output.map(({ custom_id: id, response, error }) => [id, response.status_code, error]),
    [
      ['a', 200, null],
      ['A', 200, null],
    ],
  );
  assert.equal(output[1].response.body.choices[0].message.content, 'Grüße, 世界');
  assert.equal((await send('GET', `/generation?id=${output[0].response.request_id}`)).status, 200);
  const [{ id, response, error }] = errors;
  assert.ok(typeof id === 'string' && error === null);
  assert.equal(response.status_code, 400);
  assert.match(response.body.error.message, /script/);

  const file = await openai.files.retrieve(batch.output_file_id!);
  assert.deepEqual(
    [file.purpose, file.filename, file.expires_at! - file.created_at],
    ['batch_output', `${batch.id}_output.jsonl`, 30 * 86_400],
  );
  const listed = [];
  for await (const each of openai.files.list({ purpose: 'batch_output' })) listed.push(each.id);
  assert.ok(listed.includes(batch.output_file_id!) && listed.includes(batch.error_file_id!));
  const { data: entries } = (await control.call('GET', '/audit?limit=20')).body;
  const audited = entries.find((entry: Json) => entry.resource_id === batch.output_file_id);
  assert.deepEqual([audited.action, audited.actor.type], ['file.created', 'gateway']);
  await openai.files.delete(batch.error_file_id!);
  await assert.rejects(openai.files.content(batch.error_file_id!), { status: 404 });
  assert.equal((await openai.batches.retrieve(batch.id)).status, 'completed');
});

test('every line may name its own model, and every endpoint runs', async (t) => {
  const mixed = await created(openai, [
    lineOf('one', { text: 'x' }),
    lineOf('two', {}, { body: { model: 'simulated/echo', messages: [{ role: 'user', content: 'back' }] } }),
  ]);
  const batch = await ended(openai, mixed.id);
  assert.equal(batch.model, undefined);
  const { output } = await linesOf(openai, batch, ['one', 'two']);
  assert.deepEqual(
    output.map(({ response }) => response.body.model),
    [MODEL, 'simulated/echo'],
  );
  const bodies: Record<string, Json> = {
    '/v1/responses': { model: MODEL, input: JSON.stringify({ text: 'hello' }) },
    '/v1/messages': { model: MODEL, ...scripted('a', { text: 'hello' }).body },
  };
  for (const [url, body] of Object.entries(bodies)) {
    const endpoint = url as OpenAI.BatchCreateParams['endpoint'];
    const { id } = await created(openai, [{ custom_id: 'x', method: 'POST', url, body }], { endpoint });
    const done = await ended(openai, id);
    const { output: lines } = await linesOf(openai, done, ['x']);
    assert.equal(lines.length, 1, `${url} ${JSON.stringify(done)}`);
    assert.match(JSON.stringify(lines[0].response.body), /hello/, url);
  }
  const of = await startGateway(t, {
    providers: { vectors: { kind: 'openai', batches: false, model: { output_modalities: ['embeddings'] } } },
  });
  const client = openaiOf(of);
  const data = [{ object: 'embedding', index: 0, embedding: [0.25, 0.5] }];
  of.upstream.script(
    'vectors',
    wholeOf({ object: 'list', data, model: 'm', usage: { prompt_tokens: 4, total_tokens: 4 } }),
  );
  const line = { custom_id: 'x', method: 'POST', url: '/v1/embeddings', body: { model: 'test/vectors', input: ['x'] } };
  const { id } = await created(client, [line], { endpoint: '/v1/embeddings' });
  const { output: vectors } = await linesOf(client, await ended(client, id), ['x']);
  assert.deepEqual(vectors[0].response.body.data[0].embedding, data[0]!.embedding);
});

test('a batch has the members of a recorded one, of the same types', { skip: corpusMissing }, async () => {
  const typesOf = (value: Json): Json =>
    value !== null && typeof value === 'object'
      ? Object.fromEntries(Object.entries(value).map(([key, member]) => [key, typesOf(member)]))
      : typeof value;
  const batch = await ended(openai, (await created(openai, [lineOf('a', { text: 'x' })])).id);
  const found = recordings(['batches'], /^openai$/).map(({ text }) => JSON.parse(text));
  const recorded = found.find(({ object, status }) => object === 'batch' && status === 'completed');
  assert.deepEqual({ ...typesOf(batch) }, typesOf(recorded));
});

test('a batch from a file runs in the batch interface of a provider, too', async (t) => {
  const { vendor, gateway: of } = await startNative(t, 'openai');
  vendor.answer = (call) =>
    call.body.messages[0].content === 'fails' ? { status: 400, body: { error: { message: 'no' } } } : chatAnswer(call);
  const client = openaiOf(of);
  const line = (id: string, content: string) => ({
    custom_id: id,
    method: 'POST',
    url: CHAT,
    body: { model: 'test/native', max_tokens: 20, messages: [{ role: 'user', content }] },
  });
  const batch = await ended(
    client,
    (await created(client, [line('a', 'hello'), line('b', 'fails'), line('c', 'bye')])).id,
  );
  assert.equal(batch.status, 'completed');
  const { output, errors } = await linesOf(client, batch, ['a', 'b', 'c']);
  assert.deepEqual(
    output.map(({ response }) => response.body.choices[0].message.content),
    ['re: hello', 're: bye'],
  );
  assert.deepEqual([errors[0].custom_id, errors[0].response.status_code], ['b', 400]);
  assert.equal(vendor.batches.length, 1);
});

test('batches are listed newest first, page by page, each in one shape for the client', async () => {
  const { id: workspace } = await control.made({ name: 'Pages of batches', slug: 'pages-of-batches' });
  const { token } = await control.keyIn(workspace, 'pages');
  const client = openaiOf(gateway, token);
  const native = batchesOf(gateway, token);
  const ids: string[] = [];
  for (const name of ['one', 'two', 'three']) ids.unshift((await created(client, [lineOf(name, { text: 'x' })])).id);
  ids.unshift((await native.submitted(chatBatch([scripted('four', { text: 'x' })]))).id);
  const listed: OpenAI.Batch[] = [];
  for await (const batch of client.batches.list({ limit: 2 })) listed.push(batch);
  assert.deepEqual(
    listed.map(({ id }) => id),
    ids,
  );
  const page = await client.batches.list({ limit: 2, after: ids[1]! });
  assert.deepEqual([page.data.map(({ id }) => id), page.has_more], [ids.slice(2), false]);
  const { first_id: first, last_id: last } = (await native.send('GET', '/batches')).body;
  assert.deepEqual([first, last], [ids[0], ids[3]]);

  const [fourth] = ids;
  const done = await ended(client, fourth!);
  assert.deepEqual(
    [done.status, done.input_file_id, done.output_file_id, done.usage!.total_tokens > 0, 'results' in done],
    ['completed', null, null, true, false],
  );
  assert.equal((await native.send('GET', `/batches/${fourth}`)).body.results.length, 1);
  await ended(client, ids[1]!);
  // Without the headers of an SDK, a batch has the shape that it was made in.
  const { body } = await native.send('GET', `/batches/${ids[1]}`);
  assert.ok(typeof body.output_file_id === 'string' && !('results' in body));
  const all = (await native.send('GET', '/batches')).body.data;
  assert.deepEqual(
    all.map((batch: Json) => 'results' in batch),
    [true, false, false, false],
  );
  const lines = await (
    await fetch(`${gateway.api}/batches/${ids[1]}/results`, { headers: { authorization: `Bearer ${token}` } })
  ).text();
  assert.equal(JSON.parse(lines).custom_id, 'three');
  for (const limit of [0, 101, -1]) await assert.rejects(client.batches.list({ limit }), { status: 400 });
});

test('a cancelled batch has every item in its files, also when it is cancelled before its file is read', async () => {
  const lines = Array.from({ length: 60 }, (_, n) =>
    lineOf(`item-${n}`, n < 3 ? { text: 'fast' } : { text: 'slow', delay_ms: { headers: 300 } }),
  );
  const ids = lines.map((line) => line.custom_id);
  const early = await created(openai, lines);
  assert.equal((await openai.batches.cancel(early.id)).status, 'cancelling');
  const late = await created(openai, lines);
  await until(async () => (await openai.batches.retrieve(late.id)).request_counts!.completed > 0, 'an item is done');
  assert.equal((await openai.batches.cancel(late.id)).status, 'cancelling');
  for (const { id } of [early, late]) {
    const batch = await ended(openai, id);
    assert.equal(batch.status, 'cancelled');
    assert.ok(batch.cancelling_at! <= batch.cancelled_at! && batch.completed_at === null);
    const { output, errors } = await linesOf(openai, batch, ids);
    assert.ok(id === early.id || output.length > 0);
    assert.deepEqual(
      new Set(errors.map(({ response, error }) => `${response} ${error.code}`)),
      new Set(['null batch_cancelled']),
    );
    await assert.rejects(openai.batches.cancel(id), { status: 409 });
  }
});

// Bug 84: what has finished is kept, billed and downloadable.
test('a batch whose window ends keeps its finished results, names the other items, and its files expire', async (t) => {
  const of = await startGateway(t);
  const client = openaiOf(of);
  const lines = [
    lineOf('fast', { text: 'x' }),
    ...Array.from({ length: 30 }, (_, n) => lineOf(`item-${n}`, { text: 'slow', delay_ms: { headers: 1_000 } })),
  ];
  const HOURS = 2 * 3_600;
  const { id } = await created(client, lines, { output_expires_after: { anchor: 'created_at', seconds: HOURS } });
  await until(async () => (await client.batches.retrieve(id)).request_counts!.completed > 0, 'the first item is done');
  of.clock.jump(86_400_000);
  const batch = await ended(client, id);
  assert.equal(batch.status, 'expired');
  assert.ok(batch.expired_at! >= batch.expires_at!);
  const { output, errors } = await linesOf(
    client,
    batch,
    lines.map((line) => line.custom_id),
  );
  assert.equal(output[0].response.body.choices[0].message.content, 'x');
  assert.ok(batch.usage!.total_tokens > 0 && errors.length > 0);
  assert.deepEqual(
    new Set(errors.map(({ response, error }) => `${response} ${error.code}`)),
    new Set(['null batch_expired']),
  );
  of.clock.jump(HOURS * 1000);
  await assert.rejects(client.files.content(batch.output_file_id!), { status: 404 });
  await assert.rejects(client.files.content(batch.error_file_id!), { status: 404 });
});

// Bug 82
test('the same custom_id in two batches at the same time, of two workspaces, gets its own answer', async () => {
  const { id: workspace } = await control.made({ name: 'Same ids', slug: 'same-ids' });
  const { token } = await control.keyIn(workspace, 'same');
  const clients = [openai, openai, openaiOf(gateway, token)];
  const made = await Promise.all(
    clients.map((client, n) => created(client, [lineOf('1', { text: `batch ${n}`, delay_ms: { headers: 50 } })])),
  );
  for (const [n, client] of clients.entries()) {
    const { output } = await linesOf(client, await ended(client, made[n]!.id), ['1']);
    assert.equal(output[0].response.body.choices[0].message.content, `batch ${n}`);
  }
});

test('a batch created again with its Idempotency-Key is the first one', async () => {
  const input = await uploaded(openai, jsonl([lineOf('once', { text: 'x' })]));
  const create = (metadata: Record<string, string>) =>
    openai.batches.create(
      { input_file_id: input, endpoint: CHAT, completion_window: '24h', metadata },
      { headers: { 'Idempotency-Key': 'from-file' } },
    );
  const made = await Promise.all([create({ a: '1' }), create({ a: '1' }), create({ a: '1' })]);
  assert.equal(new Set(made.map(({ id }) => id)).size, 1);
  assert.equal((await ended(openai, made[0]!.id)).status, 'completed');
  assert.equal((await create({ a: '1' })).output_file_id, (await openai.batches.retrieve(made[0]!.id)).output_file_id);
  await assert.rejects(create({ a: '2' }), { status: 422 });
});
