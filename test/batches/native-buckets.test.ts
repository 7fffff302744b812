/** Batches over a bucket of the account: Bedrock with S3, Vertex AI with Cloud Storage. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../../src/base/config.ts';
import { KINDS } from '../../src/providers/index.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { type BatchVendor, linesIn, type VendorRequest } from '../../src/testing/upstream/batch-vendor.ts';
import { controlOf } from '../workspaces/control.ts';
import { batchesOf, type Json } from './batches-client.ts';
import {
  answers,
  converseAnswer,
  geminiAnswer,
  halfCost,
  item,
  messageAnswer,
  nativeBatch,
  startNative,
} from './native.ts';

const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }];
const claudeBatch = (requests: readonly Json[]) => ({ endpoint: '/v1/messages', model: 'test/native', requests });
const beta = { 'anthropic-beta': 'context-1m-2025-08-07' };
const alone = { body: { messages: [{ content: 'alone' }], contents: [{ parts: 'alone' }] } };
const strict = { provider: { allow_fallbacks: false } };
const chatTexts = (batch: Json) =>
  batch.results.map(({ response, error }: Json) => response?.body.choices[0].message.content ?? error.error_type);
const isSingle = ({ path }: VendorRequest) => /\/converse$|:generateContent$/.test(path);

/** The vendor also answers single requests, with another text. */
function answersAlone(vendor: BatchVendor, answer: (call: Json) => { status: number; body: Json }) {
  const { fault } = vendor;
  vendor.fault = (request) => (isSingle(request) ? answer(alone) : fault(request));
}

/** The calls as they were uploaded. */
function uploadedLines(vendor: BatchVendor): Json[] {
  const uploads = vendor.requests.filter(({ path }) => /input\.jsonl$/.test(path) && !/model-invocation/.test(path));
  return uploads.filter(({ method }) => method === 'PUT' || method === 'POST').flatMap(({ body }) => linesIn(body));
}

for (const kind of ['bedrock', 'vertex'] as const) {
  test(`${kind}: an upload whose answer is lost is made again, and nothing stays in the bucket`, async (t) => {
    const { vendor, gateway } = await startNative(t, kind);
    vendor.answer = answers[kind];
    let lost = false;
    vendor.fault = ({ method, path }) => {
      if (lost || !/input\.jsonl$/.test(path) || method === 'GET') return undefined;
      lost = true;
      return 'drop';
    };
    const { submitted, ended, send } = batchesOf(gateway);
    const batch = await ended((await submitted(nativeBatch([item('a'), item('ü')]))).id);
    assert.deepEqual(chatTexts(batch), ['re: a', 're: ü']);
    assert.equal(vendor.batches.length, 1);
    assert.equal(vendor.files.size, 0);
    const { deletion } = (await send('DELETE', `/batches/${batch.id}`)).body;
    assert.deepEqual(deletion.upstream, { provider: 'Provider native', status: 'deleted' });
  });

  test(`${kind}: a bucket that refuses, or a job that fails, is named, and requests run one by one`, async (t) => {
    const { vendor, gateway } = await startNative(t, kind);
    vendor.fault = ({ path }) => (/input\.jsonl$/.test(path) ? { status: 403 } : undefined);
    answersAlone(vendor, answers[kind]);
    const { submitted, ended } = batchesOf(gateway);
    const batch = await ended((await submitted(nativeBatch([item('a')]))).id);
    assert.deepEqual(chatTexts(batch), ['re: alone']);
    const refused = await ended((await submitted(nativeBatch([item('a')], strict))).id);
    assert.match(refused.results[0].error.message, /the bucket (s3|gs):\/\/calls\/: .*refuses/);
    vendor.fault = ({ method, path }) => {
      if (method === 'GET' && /job\/|Jobs\//.test(path)) {
        vendor.finish(vendor.batches[0]!, 'failed', 0);
        vendor.batches[0]!.message = 'the input cannot be read';
      }
      return undefined;
    };
    const failed = await ended((await submitted(nativeBatch([item('a')], strict))).id);
    assert.match(failed.results[0].error.message, /the input cannot be read/);
  });

  test(`${kind}: requests with a customer's credential run one by one, because the bucket is another's`, async (t) => {
    const { vendor, gateway } = await startNative(t, kind);
    answersAlone(vendor, answers[kind]);
    const account = gateway.config.providers[0]!.credentials[0]!.reveal();
    const key =
      kind === 'bedrock'
        ? 'a-bedrock-key-of-a-customer'
        : JSON.stringify({ ...JSON.parse(account), private_key_id: 'own' });
    const made = await controlOf(gateway).call('POST', '/byok', { provider: 'native', key });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const { submitted, ended } = batchesOf(gateway);
    const batch = await ended((await submitted(nativeBatch([item('a')]))).id);
    assert.deepEqual(chatTexts(batch), ['re: alone']);
    assert.equal(vendor.batches.length, 0);
    assert.equal(batch.usage.is_byok, true);
  });
}

test('Bedrock: Claude is called in its own format with tools, and Converse refuses them', async (t) => {
  const { vendor, gateway } = await startNative(t, 'bedrock', { model: { upstream_id: 'eu.anthropic.claude-x-v1:0' } });
  vendor.answer = messageAnswer;
  const { submitted, ended } = batchesOf(gateway);
  const tool = { name: 'f', input_schema: { type: 'object', properties: {} } };
  const own = await ended((await submitted(claudeBatch([item('a', 'a', { tools: [tool] })]))).id);
  assert.equal(own.results[0].response.body.content[0].text, 're: a');
  assert.ok(Math.abs(own.usage.cost - halfCost(['a'])) < 1e-9, String(own.usage.cost));
  const [line] = uploadedLines(vendor);
  assert.equal(line.modelInput.anthropic_version, 'bedrock-2023-05-31');
  assert.equal(line.modelInput.tools[0].name, 'f');
  assert.equal(vendor.batches[0]!.details.modelId, 'eu.anthropic.claude-x-v1:0');
  vendor.answer = converseAnswer;
  answersAlone(vendor, converseAnswer);
  const mixed = await ended((await submitted(nativeBatch([item('a'), item('b', 'b', { tools })]))).id);
  assert.deepEqual(chatTexts(mixed), ['re: a', 're: alone']);
  assert.equal(vendor.batches.at(-1)!.details.modelInvocationType, 'Converse');
});

test('Bedrock: fewer requests than a job takes run one by one', async (t) => {
  const { vendor, gateway } = await startNative(t, 'bedrock', { provider: { batch_minimum: '3' } });
  vendor.answer = converseAnswer;
  answersAlone(vendor, converseAnswer);
  const { submitted, ended } = batchesOf(gateway);
  const few = await ended((await submitted(nativeBatch([item('a'), item('b')]))).id);
  assert.deepEqual(chatTexts(few), ['re: alone', 're: alone']);
  assert.equal(vendor.batches.length, 0);
  const enough = await ended((await submitted(nativeBatch([item('a'), item('b'), item('c')]))).id);
  assert.deepEqual(chatTexts(enough), ['re: a', 're: b', 're: c']);
});

test('Vertex AI: Claude is called in its own format, and its lines have ids', async (t) => {
  const { vendor, gateway } = await startNative(t, 'vertex', { model: { upstream_id: 'claude-x@20260101' } });
  vendor.answer = messageAnswer;
  const { submitted, ended, send } = batchesOf(gateway);
  const own = await ended((await submitted(claudeBatch([item('a')]))).id);
  assert.equal(own.results[0].response.body.content[0].text, 're: a');
  assert.equal(vendor.batches[0]!.details.model, 'publishers/anthropic/models/claude-x@20260101');
  assert.equal(uploadedLines(vendor)[0].request.anthropic_version, 'vertex-2023-10-16');
  vendor.fault = ({ path }) =>
    path.endsWith(':rawPredict') ? { status: 200, body: messageAnswer(alone).body } : undefined;
  const params = { model: 'test/native', ...item('b').body };
  const response = await gateway.post('/messages/batches', { requests: [{ custom_id: 'b', params }] }, beta);
  const { id } = (await response.json()) as Json;
  const { request_counts: counts } = await until(async () => {
    const { body } = await send('GET', `/messages/batches/${id}`);
    return body.processing_status === 'ended' && body;
  }, 'the batch with beta features ends');
  assert.equal(counts.succeeded, 1);
  assert.equal(vendor.batches.length, 1, 'lines have no place for beta features');
});

test('Vertex AI: labels of a client stay, and a failure without a code runs again', async (t) => {
  const { vendor, gateway } = await startNative(t, 'vertex');
  vendor.answer = (call) =>
    JSON.stringify(call.body).includes('"b"') ? { status: 500, body: 'a text' } : geminiAnswer(call);
  answersAlone(vendor, geminiAnswer);
  const { submitted, ended } = batchesOf(gateway);
  const batch = await ended(
    (await submitted(nativeBatch([item('a', 'a', { labels: { team: 'red' } }), item('b')]))).id,
  );
  assert.deepEqual(chatTexts(batch), ['re: a', 're: alone']);
  const [{ request }] = uploadedLines(vendor);
  assert.equal(request.labels.team, 'red');
  assert.match(request.labels.gatehouse_call, /^[0-9a-f]{32}x0$/);
});

test('settings of buckets that are incomplete are problems of the configuration', () => {
  const load = (provider: object) => {
    const providers = [{ id: 'a', api_key: '{"a":"b"}', region: 'eu-central-1', ...provider }];
    return loadConfig({ env: {}, cwd: '/', kinds: KINDS, readFile: () => JSON.stringify({ providers }) });
  };
  const bucket = { kind: 'bedrock', batch_bucket: 's3://calls/folder' };
  const role = { batch_role: 'arn:aws:iam::123456789012:role/batches' };
  load({ ...bucket, ...role });
  assert.throws(() => load(bucket), /providers\[0\].*batch_role/s);
  assert.throws(() => load({ kind: 'bedrock', ...role }), /providers\[0\].*batch_bucket/s);
  assert.throws(() => load({ kind: 'bedrock', batches: true }), /providers\[0\].*batch_bucket and batch_role/s);
  assert.throws(() => load({ ...bucket, ...role, batch_bucket: 'https://calls' }), /batch_bucket.*must be s3:/s);
  const base_url = 'https://vpce-1.bedrock-runtime.eu-central-1.vpce.amazonaws.com';
  assert.throws(() => load({ ...bucket, ...role, base_url }), /providers\[0\].*batch_url/s);
});
