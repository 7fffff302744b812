/** Exactly one row for embeddings, rerank and videos, also when the client disconnects or the process dies. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { embeddedTarget, rowsOnce } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { gatewayHome, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { startUpstream } from '../../src/testing/upstream/upstream.ts';

const FORMATS = {
  embeddings: {
    kind: 'openai',
    output: 'embeddings',
    body: { model: 'test/it', input: ['x'.repeat(400), 'y'.repeat(400)], user: 'tag' },
  },
  rerank: {
    kind: 'cohere',
    output: 'rerank',
    body: { model: 'test/it', query: 'q', documents: Array.from({ length: 150 }, () => 'text'), user: 'tag' },
  },
} as const;

const pricing = { prompt: '0.000001', completion: '0', request: '0.001' };

for (const [route, { kind, output, body }] of Object.entries(FORMATS)) {
  test(`a client that leaves POST /${route} ends the call, and its one row has the estimate`, async (t) => {
    const gateway = await startGateway(t, {
      providers: { it: { kind, model: { output_modalities: [output], pricing } } },
    });
    gateway.upstream.script('it', [{ end: 'stall-before-headers' }]);
    const leave = new AbortController();
    const asked = fetch(`${gateway.api}/${route}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: leave.signal,
    });
    await gateway.upstream.request('it');
    leave.abort();
    await assert.rejects(asked);
    const [row, ...others] = await rowsOnce(gateway.target, 1);
    assert.equal(others.length, 0);
    assert.deepEqual([row!.tag, row!.cancelled, row!.estimated, row!.status], ['tag', true, true, null]);
    checkCost(route, row!);
  });
}

test('a process killed during embeddings, rerank and the polling for a video leaves a journal, and the next one enters each request once', async (t) => {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  const providers = Object.entries(FORMATS).map(([route, { kind, output }]) => {
    const url = upstream.script(route, [{ end: 'stall-before-headers' }]);
    const model = { id: `test/${route}`, output_modalities: [output], pricing };
    return plannedYaml(url, { provider: { id: route, kind }, model })['providers'] as object[];
  });
  const queued = { headers: { 'content-type': 'application/json' }, chunks: ['{"id":"v_1","status":"queued"}'] };
  const video = plannedYaml(upstream.script('videos', [queued]), {
    provider: { id: 'videos', kind: 'openai' },
    model: {
      ...{ id: 'test/videos', output_modalities: ['video'] },
      pricing: { prompt: '0', completion: '0', output_second: '0.1' },
    },
  });
  const home = await gatewayHome(t);
  const yaml = { providers: [...providers.flat(), ...(video['providers'] as object[])] };
  const gateway = await startGatewayProcess(t, { home, yaml });
  const asked = Object.entries(FORMATS).map(([route, { body }]) =>
    gateway.post(`/${route}`, { ...body, model: `test/${route}`, user: route }).catch(() => {}),
  );
  for (const route of Object.keys(FORMATS)) await upstream.request(route);
  const created = await gateway.post('/videos', { model: 'test/videos', prompt: 'a', duration: 8, user: 'videos' });
  const { id } = (await created.json()) as { id: string };
  assert.equal(created.status, 202);
  gateway.signal('SIGKILL');
  await gateway.exit;
  await Promise.all(asked);

  const next = await startGatewayProcess(t, { home });
  const rows = await rowsOnce(embeddedTarget(home), 3);
  assert.deepEqual(rows.map(({ tag }) => tag).sort(), ['embeddings', 'rerank', 'videos']);
  for (const row of rows) {
    assert.deepEqual([row.unconfirmed, row.status], [true, null], row.tag);
    if (row.tag === 'videos') assert.equal(row.cost, 800_000_000n);
    else checkCost(row.tag, row);
  }
  // The claim of its poller has not ended yet.
  assert.equal(((await (await next.get(`/videos/${id}`)).json()) as { status: string }).status, 'in_progress');
});

/** About a token for four bytes of the body; 150 documents are two search units on top. */
function checkCost(route: string, { input, cost }: { input: bigint | null; cost: bigint }): void {
  const units = route === 'rerank' ? 2n : 1n;
  assert.ok(input! > 150n && input! < 700n, String(input));
  assert.equal(cost, input! * 1000n + units * 1_000_000n);
}
