/** What OpenAI's clients may give as a batch, and what is refused: the members, the input file, its lines. */
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf } from '../workspaces/control.ts';
import { batchesOf, chatBatch, type Json, scripted } from './batches-client.ts';
import { CHAT, created, ended, jsonl, lineOf, linesOf, openaiOf, uploaded } from './openai-client.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) });
const control = controlOf(gateway);
const { send, submitted, refused } = batchesOf(gateway);
const openai = openaiOf(gateway);

// Bug 81: a custom_id that occurs twice is refused, with its place.
test('a line that cannot run fails the batch, which names the line, its custom_id and the field', async () => {
  const good = lineOf('good');
  const of = (body: object) => lineOf('bad', {}, { body: { ...good.body, ...body } });
  const { model: _, ...noModel } = good.body;
  const cases: [lines: readonly unknown[], code: string, line: number | null, param: string | null, message: RegExp][] =
    [
      [[good, '{"custom_id":'], 'invalid_json_line', 2, null, /^line 2: /],
      [[good, '[1]'], 'invalid_json_line', 2, null, /^line 2: /],
      [[good, '', lineOf('x')], 'invalid_json_line', 2, null, /^line 2 is blank/],
      [
        [good, lineOf('b'), good],
        'duplicate_custom_id',
        3,
        'custom_id',
        /^line 3: custom_id "good" is also that of line 1/,
      ],
      [[{ ...good, custom_id: undefined }], 'missing_required_parameter', 1, 'custom_id', /custom_id is missing/],
      [[{ ...good, custom_id: '' }], 'invalid_request', 1, 'custom_id', /must be a text/],
      [[{ ...good, custom_id: 7 }], 'invalid_request', 1, 'custom_id', /must be a text/],
      [[{ ...good, body: undefined }], 'missing_required_parameter', 1, 'body', /^line 1 \(custom_id "good"\): body/],
      [[{ ...good, body: [] }], 'invalid_request', 1, 'body', /must be an object/],
      [[{ ...good, method: 'GET' }], 'invalid_method', 1, 'method', /must be POST/],
      [[{ ...good, url: '/v1/responses' }], 'url_mismatch', 1, 'url', /must be \/v1\/chat\/completions/],
      [[{ ...good, priority: 1 }], 'invalid_request', 1, 'priority', /is not a member of a request/],
      [[good, of({ model: 'no/model' })], 'model_not_found', 2, 'body.model', /custom_id "bad".*no model "no\/model"/],
      [[lineOf('bad', {}, { body: noModel })], 'invalid_request', 1, 'body.model', /model must be a text/],
      [[of({ stream: true })], 'invalid_request', 1, 'body.stream', /stream must not be true/],
      [[of({ messages: [{ role: 'nobody', content: 'x' }] })], 'invalid_request', 1, 'body.messages[0].role', /role/],
      [['', ' '], 'empty_file', null, null, /is empty/],
      [[good, ...Array(1_001).fill('')], 'invalid_json_line', 2, null, /^line 2 is blank/],
    ];
  for (const [lines, code, line, param, message] of cases) {
    const batch = await ended(openai, (await created(openai, lines)).id);
    assert.equal(batch.status, 'failed', JSON.stringify(batch));
    assert.equal(batch.errors!.object, 'list');
    const [error, ...others] = batch.errors!.data!;
    assert.deepEqual([error!.code, error!.line, error!.param, others], [code, line, param, []], JSON.stringify(batch));
    assert.match(error!.message!, message);
    assert.deepEqual(batch.request_counts, { total: 0, completed: 0, failed: 0 });
    assert.ok(batch.failed_at! >= batch.created_at && batch.in_progress_at === null);
    assert.deepEqual([batch.output_file_id, batch.error_file_id], [null, null]);
  }
  const wrong = Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? lineOf(`ok-${n}`) : '{}'));
  const { errors } = await ended(openai, (await created(openai, wrong)).id);
  assert.deepEqual(
    errors!.data!.map(({ line }) => line),
    Array.from({ length: 20 }, (_, n) => 2 * n + 2),
  );
});

test('a batch from a file is created on the global host only, as files are', async (t) => {
  const of = await startGateway(t, { yaml: { hosts: { europe: ['eu.test'], global: ['127.0.0.1'] } } });
  const input = await uploaded(openaiOf(of), jsonl([lineOf('a')]));
  const body = JSON.stringify({ input_file_id: input, endpoint: CHAT, completion_window: '24h' });
  const asked = async (host: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    const headers = { host, authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' };
    const request = http.request(`${of.api}/batches`, { method: 'POST', headers });
    request.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject);
    request.end(body);
    return promise;
  };
  assert.deepEqual([await asked('eu.test'), await asked('127.0.0.1')], [403, 200]);
});

// Bug 81: the ids of a batch are compared exactly, and no text is special.
test('custom ids that differ in any character are different', async () => {
  const ids = ['a', 'A', 'a ', ' a', 'ä', 'a\u0308', '__proto__', 'constructor', '0', '00', '"', '\\', 'x'.repeat(256)];
  const batch = await ended(
    openai,
    (
      await created(
        openai,
        ids.map((id) => lineOf(id, { text: 'x' })),
      )
    ).id,
  );
  assert.equal(batch.status, 'completed', JSON.stringify(batch.errors));
  await linesOf(openai, batch, ids);
});

test('line ends of every kind, a byte order mark and blank lines at the end are read', async () => {
  const [one, two] = [lineOf('one', { text: '1' }), lineOf('two', { text: '2' })].map((line) => JSON.stringify(line));
  for (const text of [`${one}\n${two}`, `\ufeff${one}\r\n${two}\r\n`, `${one}\n${two}\n\n \n`]) {
    const input = await uploaded(openai, text);
    const { id } = await openai.batches.create({ input_file_id: input, endpoint: CHAT, completion_window: '24h' });
    await linesOf(openai, await ended(openai, id), ['one', 'two']);
  }
});

test('what cannot be created is refused at once', async () => {
  const input = await uploaded(openai, jsonl([lineOf('a')]));
  const create = (more: object) =>
    openai.batches.create({ input_file_id: input, endpoint: CHAT, completion_window: '24h', ...more } as Json);
  const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 'v']));
  const image = await openai.files.create({ file: await toFile(Buffer.from('text'), 'a.txt'), purpose: 'user_data' });
  const refusals: [object, number, RegExp][] = [
    [{ input_file_id: 'file_none' }, 404, /input_file_id: the workspace has no file with the id file_none/],
    [{ input_file_id: undefined }, 400, /input_file_id/],
    [{ input_file_id: image.id }, 400, /input_file_id names a file with the purpose user_data/],
    [{ endpoint: '/v1/moderations' }, 400, /endpoint/],
    [{ completion_window: '1h' }, 400, /completion_window/],
    [{ requests: [] }, 400, /input_file_id cannot be combined with requests/],
    [{ metadata: pairs(17) }, 400, /metadata/],
    [{ metadata: { ['k'.repeat(65)]: 'v' } }, 400, /metadata/],
    [{ metadata: { k: 'v'.repeat(513) } }, 400, /metadata/],
    [{ metadata: { k: 1 } }, 400, /metadata/],
    [{ metadata: { k: 'a\0b' } }, 400, /metadata/],
    [{ metadata: { k: '\ud800' } }, 400, /surrogate/],
    [{ output_expires_after: { anchor: 'created_at', seconds: 3_599 } }, 400, /output_expires_after\.seconds/],
    [{ output_expires_after: { anchor: 'now', seconds: 3_600 } }, 400, /output_expires_after\.anchor/],
  ];
  for (const [more, status, message] of refusals) {
    await assert.rejects(create(more), (error: Json) => {
      assert.equal(error.status, status, JSON.stringify(more));
      assert.match(error.message, message);
      return true;
    });
  }
  const poor = (await control.call('POST', '/keys', { name: 'poor', limit: 0 })).body.key;
  const mine = { input_file_id: input, endpoint: CHAT, completion_window: '24h' } as const;
  await assert.rejects(openaiOf(gateway, poor).batches.create(mine), { status: 402 });
  const most = { ...pairs(15), ['k'.repeat(64)]: '世'.repeat(512) };
  assert.deepEqual((await create({ metadata: most })).metadata, most);
  const { id: workspace } = await control.made({ name: 'Batches apart', slug: 'batches-apart' });
  const { token } = await control.keyIn(workspace, 'apart');
  const other = openaiOf(gateway, token);
  await assert.rejects(other.batches.create({ input_file_id: input, endpoint: CHAT, completion_window: '24h' }), {
    status: 404,
  });
  const theirs = await ended(other, (await created(other, [lineOf('x', { text: 'theirs' })])).id);
  await assert.rejects(openai.files.content(theirs.output_file_id!), { status: 404 });
  await assert.rejects(openai.batches.retrieve(theirs.id), { status: 404 });
  await assert.rejects(openai.batches.cancel(theirs.id), { status: 404 });
  assert.deepEqual(
    (await other.batches.list()).data.map(({ id }) => id),
    [theirs.id],
  );
});

test('a batch whose input file is deleted before it is read fails, and says so', async () => {
  const input = await uploaded(openai, jsonl([lineOf('a', { text: 'x' })]));
  const [batch] = await Promise.all([
    openai.batches
      .create({ input_file_id: input, endpoint: CHAT, completion_window: '24h' })
      .catch((error: Json) => error),
    openai.files.delete(input),
  ]);
  if (batch instanceof OpenAI.APIError) return assert.equal(batch.status, 404);
  const done = await ended(openai, batch.id);
  if (done.status === 'completed') return void (await linesOf(openai, done, ['a']));
  assert.equal(done.status, 'failed');
  const [error] = done.errors!.data!;
  assert.deepEqual([error!.param, error!.line], ['input_file_id', null]);
  assert.match(error!.message!, /was deleted/);
});

test('a batch of a client that is not an SDK, and of a body that only looks like one', async () => {
  const input = await uploaded(openai, jsonl([lineOf('a', { text: 'x' })]));
  const body = { metadata: null, completion_window: '24h', endpoint: CHAT, input_file_id: input };
  const made = await send('POST', '/batches', body);
  assert.deepEqual([made.status, made.body.input_file_id, made.body.status], [200, input, 'validating']);
  await ended(openai, made.body.id);
  await refused(send('POST', '/batches', { ...body, callback: 1 }), 400, /callback/);
  await refused(
    send('POST', '/batches', chatBatch([scripted('a')], body)),
    400,
    /input_file_id cannot be combined with/,
  );
  assert.equal((await submitted(chatBatch([scripted('a')]))).status, 'validating');
});
