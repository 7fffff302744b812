/** Faults of batch services that users of other gateways met, tried on a whole one. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { RawClient } from '../../src/testing/clients/raw-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply, wholeOf } from '../../src/testing/upstream/answers.ts';
import { sentTo, startGuarded } from '../guardrails/guarded.ts';
import { PLACES } from '../guardrails/phrase-places.ts';
import { batchesOf, type Json, scripted } from './batches-client.ts';

const MEGA = 2 ** 20;
const DAY_MS = 24 * 3_600_000;
const { gateway, guarded, control } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: {}, messages: { kind: 'messages' } } },
);
gateway.upstream.script('chat', [{ ...wholeOf(chatReply({ text: 'fine' })), repeat: true }]);
const clientOf = (apiKey: string, { url } = gateway) =>
  new Anthropic({ baseURL: url, apiKey, authToken: null, maxRetries: 0 }).messages.batches;

const ENDPOINTS = ['/chat/completions', '/messages', '/responses', '/embeddings'];

test('64 | a phrase that is blocked is blocked in every place of the requests of a batch, and none reaches a provider', async () => {
  const key = await guarded({ content_filter_builtins: [{ slug: 'regex-prompt-injection', action: 'block' }] });
  const seen = [sentTo(gateway, 'chat'), sentTo(gateway, 'messages')];
  const { send, ended } = batchesOf(gateway, key.token);
  let ran = 0;
  for (const [place, [path, { model, ...body }]] of Object.entries(PLACES)) {
    if (!ENDPOINTS.includes(path)) continue;
    const requests = [{ custom_id: 'a', body }];
    const { status, body: made } = await send('POST', '/batches', { endpoint: `/v1${path}`, model, requests });
    // Batches carry no documents.
    if (status !== 202) {
      assert.match(made.error.message, /file content; a batch carries text only/, place);
      continue;
    }
    const [{ response, error }] = (await ended(made.id)).results;
    assert.deepEqual([response, error.error_type], [null, 'permission_denied'], place);
    assert.match(error.message, /guardrail of this key blocks/, place);
    ran += 1;
  }
  assert.ok(ran > 20, String(ran));
  const places = Object.values(PLACES).filter(([path]) => path === '/messages');
  const requests = places.map(([, params], n) => ({ custom_id: `${n}`, params: params as never }));
  const text = requests.filter(({ params }) => !JSON.stringify(params).includes('"document"'));
  const { id } = await clientOf(key.token).create({ requests: text });
  await until(async () => (await clientOf(key.token).retrieve(id)).processing_status === 'ended', 'it ends');
  for await (const { result } of await clientOf(key.token).results(id)) {
    assert.ok(result.type === 'errored' && result.error.error.type === 'permission_error', JSON.stringify(result));
  }
  assert.deepEqual(
    seen.flatMap((sent) => sent()),
    [],
  );
});

test('76 | a batch without a valid key is refused before its body, and a too large or packed one at once', async () => {
  const port = Number(new URL(gateway.url).port);
  const refused = async (path: string, key: string, header: string) => {
    const client = await RawClient.open(port);
    const type = 'Content-Type: application/json';
    await client.send(
      `POST /api/v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${type}\r\n${header}\r\n\r\n`,
    );
    const { status } = await client.response();
    client.leave();
    return status;
  };
  const long = `Content-Length: ${200 * MEGA}`;
  for (const path of ['/batches', '/messages/batches']) {
    assert.equal(await refused(path, 'sk-wrong', long), 401, path);
    assert.equal(await refused(path, 'sk-wrong', 'Transfer-Encoding: chunked'), 401, path);
    assert.equal(await refused(path, INFERENCE_KEY, `Content-Length: ${200 * MEGA + 1}`), 413, path);
    assert.equal(await refused(path, INFERENCE_KEY, `Content-Encoding: gzip\r\n${long}`), 415, path);
  }
});

const params = (script: object) => ({ model: 'simulated/script', ...scripted('x', script).body }) as never;

test('82 | two workspaces use the same custom_ids at the same time, and each gets its own answers', async () => {
  const { id: workspace } = await control.made({ name: 'Second', slug: 'second' });
  const { body } = await control.call('POST', '/keys', { name: 'second', workspace_id: workspace });
  const both = [clientOf(INFERENCE_KEY), clientOf(body.key)];
  const made = await Promise.all(
    both.map((client, n) => client.create({ requests: [{ custom_id: '1', params: params({ text: `from ${n}` }) }] })),
  );
  for (const [n, client] of both.entries()) {
    const { id } = made[n]!;
    await until(async () => (await client.retrieve(id)).processing_status === 'ended', 'it ends');
    for await (const { result } of await client.results(id)) {
      assert.equal((result as Json).message.content[0].text, `from ${n}`);
    }
  }
});

test('84 | a message batch that expires keeps and bills what is done, and names the requests that did not run', async (t) => {
  const own = await startGateway(t, { jobs: 'now' });
  const client = clientOf(INFERENCE_KEY, own);
  const requests = Array.from({ length: 31 }, (_, n) => ({
    custom_id: `${n}`,
    params: params(n === 0 ? { text: 'done' } : { text: 'slow', delay_ms: { headers: 1_000 } }),
  }));
  const { id } = await client.create({ requests });
  const { send, ended } = batchesOf(own);
  const nativeId = id.replace('msgbatch_', 'batch_');
  await until(async () => (await send('GET', `/batches/${nativeId}`)).body.request_counts.completed > 0, 'one ran');
  own.clock.jump(DAY_MS);
  const { usage } = await ended(nativeId);
  assert.ok(usage.total_tokens > 0 && usage.cost > 0, JSON.stringify(usage));
  const batch = await client.retrieve(id);
  const { succeeded, expired, ...others } = batch.request_counts;
  assert.deepEqual([succeeded + expired, others], [31, { processing: 0, errored: 0, canceled: 0 }]);
  assert.ok(succeeded > 0 && expired > 0 && batch.cancel_initiated_at === null, JSON.stringify(batch));
  const types: string[] = [];
  for await (const { result } of await client.results(id)) types.push(result.type);
  assert.deepEqual([types[0], types.filter((type) => type === 'expired').length], ['succeeded', expired]);

  own.clock.jump(31 * DAY_MS);
  const archived = await until(async () => {
    const later = await client.retrieve(id);
    return later.archived_at === null ? undefined : later;
  }, 'the results are removed');
  assert.deepEqual([archived.processing_status, archived.results_url], ['ended', null]);
  const results = await own.get(`/messages/batches/${id}/results`);
  assert.equal(results.status, 404, await results.text());
});

test('88 | pages of message batches show each once, also when some are added and deleted in between', async () => {
  const { id: workspace } = await control.made({ name: 'Paged', slug: 'paged' });
  const { body } = await control.call('POST', '/keys', { name: 'paged', workspace_id: workspace });
  const client = clientOf(body.key);
  const make = async () => (await client.create({ requests: [{ custom_id: 'a', params: params({ text: 'x' }) }] })).id;
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.unshift(await make());
  await until(async () => {
    const { data } = await client.list();
    return data.every(({ processing_status: status }) => status === 'ended');
  }, 'all have ended');
  const seen: string[] = [];
  let deleted = 0;
  for await (const { id } of client.list({ limit: 2 })) {
    seen.push(id);
    // The last one of a page is its cursor.
    if (seen.length % 2 === 0 && deleted < 2) {
      await client.delete(id);
      await make();
      deleted += 1;
    }
  }
  assert.deepEqual(seen, ids);
  const last = await client.list({ limit: 5, after_id: ids[1]! });
  assert.deepEqual([last.data.length, last.has_more], [2, false]);
});
