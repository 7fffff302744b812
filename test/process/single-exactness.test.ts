/** Exactly one row for embeddings, rerank and videos, also when the client disconnects or the process dies. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { embeddedTarget, readDays, rowsOnce } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { gatewayHome, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { type Answer, startUpstream } from '../../src/testing/upstream/upstream.ts';

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

test('after a process was killed during embeddings and rerank the next one enters each request once, and after two kills a third one has the video that was asked for once', async (t) => {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  const providers = Object.entries(FORMATS).map(([route, { kind, output }]) => {
    const url = upstream.script(route, [{ end: 'stall-before-headers' }]);
    const model = { id: `test/${route}`, output_modalities: [output], pricing };
    return plannedYaml(url, { provider: { id: route, kind }, model })['providers'] as object[];
  });
  const state = (status: string) => ({
    headers: { 'content-type': 'application/json' },
    chunks: [JSON.stringify({ id: 'v_1', status, seconds: '8' })],
  });
  const film: Answer = { headers: { 'content-type': 'video/mp4' }, chunks: ['film'] };
  const answers = [state('queued'), state('completed'), { ...film, end: 'stall' as const }, state('completed'), film];
  const video = plannedYaml(upstream.script('videos', answers), {
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

  const second = await startGatewayProcess(t, { home });
  await upstream.request('videos', 3);
  second.signal('SIGKILL');
  await second.exit;

  const third = await startGatewayProcess(t, { home });
  await until(async () => {
    const job = (await (await third.get(`/videos/${id}`)).json()) as { status: string; usage?: { cost: number } };
    return job.status === 'completed' && job.usage?.cost === 0.8;
  }, 'the video is made');
  assert.equal(await (await third.get(`/videos/${id}/content`)).text(), 'film');
  assert.deepEqual(
    upstream.requests('videos').map(({ method, path }) => `${method} ${path}`),
    ['POST /videos', 'GET /videos/v_1', 'GET /videos/v_1/content', 'GET /videos/v_1', 'GET /videos/v_1/content'],
  );
  const rows = await rowsOnce(embeddedTarget(home), 3);
  assert.deepEqual(rows.map(({ tag }) => tag).sort(), ['embeddings', 'rerank', 'videos']);
  for (const row of rows) {
    if (row.tag === 'videos') {
      assert.deepEqual([row.unconfirmed, row.estimated, row.status, row.cost], [false, false, 200, 800_000_000n]);
      continue;
    }
    assert.deepEqual([row.unconfirmed, row.status], [true, null], row.tag);
    checkCost(row.tag, row);
  }
  const cost = rows.reduce((sum, row) => sum + row.cost, 0n);
  assert.deepEqual(await readDays(embeddedTarget(home)).then((days) => [days.requests, days.cost]), [3n, cost]);
});

/** About a token for four bytes of the body; 150 documents are two search units on top. */
function checkCost(route: string, { input, cost }: { input: bigint | null; cost: bigint }): void {
  const units = route === 'rerank' ? 2n : 1n;
  assert.ok(input! > 150n && input! < 700n, String(input));
  assert.equal(cost, input! * 1000n + units * 1_000_000n);
}
