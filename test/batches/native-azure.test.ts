/** Batches of Azure: both APIs, and only where the configuration asks for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../../src/base/config.ts';
import { KINDS } from '../../src/providers/index.ts';
import { linesIn } from '../../src/testing/upstream/batch-vendor.ts';
import { batchesOf } from './batches-client.ts';
import { chatAnswer, item, nativeBatch, startNative } from './native.ts';

for (const [name, provider, prefix, query] of [
  ['the v1 API', {}, '/openai/v1', ''],
  ['a preview of the v1 API', { api_version: 'preview' }, '/openai/v1', 'api-version=preview'],
  ['a dated version', { api_version: '2024-10-21' }, '/openai', 'api-version=2024-10-21'],
] as const) {
  test(`${name} runs a batch after it has read the upload, and its data is removed`, async (t) => {
    const { vendor, gateway } = await startNative(t, 'azure', {
      provider,
      model: { upstream_id: 'my-batch-deployment' },
    });
    vendor.answer = chatAnswer;
    let lines: ReturnType<typeof linesIn> = [];
    vendor.fault = ({ method, path }) => {
      if (method === 'POST' && /\/batches(\?|$)/.test(path)) lines = linesIn([...vendor.files.values()][0]!.content);
      return undefined;
    };
    const client = batchesOf(gateway);
    const batch = await client.ended((await client.submitted(nativeBatch([item('a'), item('b')]))).id);
    assert.deepEqual(
      batch.results.map(
        ({ response }: { response: { body: ReturnType<typeof chatAnswer>['body'] } }) =>
          response.body.choices[0]!.message.content,
      ),
      ['re: a', 're: b'],
    );
    for (const { path } of vendor.requests) {
      assert.ok(path.startsWith(`${prefix}/files`) || path.startsWith(`${prefix}/batches`), path);
      assert.equal(path.split(/[?&]/).filter((part) => part === query).length, query === '' ? 0 : 1, path);
    }
    const url = prefix === '/openai' ? '/chat/completions' : '/v1/chat/completions';
    assert.deepEqual(
      lines.map((line) => [line.url, line.body.model]),
      [
        [url, 'my-batch-deployment'],
        [url, 'my-batch-deployment'],
      ],
    );
    assert.equal(vendor.requests.filter(({ method }) => method === 'POST').length, 2);
    assert.equal(vendor.files.size, 0);
  });
}

test('an upload that Azure cannot read is not submitted, and its requests run one by one', async (t) => {
  const { vendor, gateway } = await startNative(t, 'azure');
  vendor.fault = ({ method, path }) => {
    if (method === 'GET' && /\/files\/[^/]+$/.test(path)) return { status: 200, body: { status: 'error' } };
    return path.endsWith('/chat/completions')
      ? { status: 200, body: chatAnswer({ body: { messages: [{ content: 'alone' }] } }).body }
      : undefined;
  };
  const client = batchesOf(gateway);
  const batch = await client.ended((await client.submitted(nativeBatch([item('a')]))).id);
  assert.equal(batch.results[0].response.body.choices[0].message.content, 're: alone');
  assert.equal(vendor.batches.length, 0);
});

test('without `batches: true` requests run one by one, at the full price', async (t) => {
  const { vendor, gateway } = await startNative(t, 'azure', { provider: { batches: undefined } });
  vendor.fault = () => ({ status: 200, body: chatAnswer({ body: { messages: [{ content: 'alone' }] } }).body });
  const client = batchesOf(gateway);
  const batch = await client.ended((await client.submitted(nativeBatch([item('a')]))).id);
  assert.equal(batch.results[0].response.body.choices[0].message.content, 're: alone');
  assert.deepEqual(
    vendor.requests.map(({ path }) => path),
    ['/openai/v1/chat/completions'],
  );
});

test('`batches: true` with the URL of one deployment is a problem of the configuration', () => {
  for (const base_url of [
    'https://r.openai.azure.com/openai/deployments/x',
    'https://r.services.ai.azure.com/models',
  ]) {
    const load = (more: object) => {
      const providers = [{ id: 'a', kind: 'azure', base_url, api_key: 'k', ...more }];
      return loadConfig({ env: {}, cwd: '/', kinds: KINDS, readFile: () => JSON.stringify({ providers }) });
    };
    assert.throws(() => load({ batches: true }), /providers\[0\].*base_url that names the resource.*batches: true/s);
    load({ batches: false });
  }
});

test('`batches: true` of a kind without a batch interface is a problem that names the kinds with one', () => {
  const load = (kind: string) => {
    const model = { id: 'test/m', context_length: 1_000, pricing: { prompt: '0', completion: '0' } };
    const providers = [{ id: 'a', kind, base_url: 'http://127.0.0.1:1', api_key: 'k', batches: true, models: [model] }];
    return loadConfig({ env: {}, cwd: '/', kinds: KINDS, readFile: () => JSON.stringify({ providers }) });
  };
  assert.throws(() => load('chat'), /providers\[0\].*batches: true, but the kind chat .*kinds with one: .*anthropic/s);
  load('openai');
});
