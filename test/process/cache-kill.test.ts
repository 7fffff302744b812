/** Kill -9 of a gateway that caches and logs: neither is promised to survive, and neither may harm what is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INFERENCE_KEY, MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { startGatewayProcess } from '../../src/testing/process/gateway-process.ts';

const BODY = { model: 'simulated/echo', max_tokens: 50, messages: [{ role: 'user', content: 'once' }] };

test('after kill -9 every request has its one row, and the next start caches and logs as before', async (t) => {
  const first = await startGatewayProcess(t, { yaml: { io_logging: { enabled: true } } });
  const at = (url: string) => ({
    async post() {
      const response = await fetch(`${url}/api/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${INFERENCE_KEY}`,
          'content-type': 'application/json',
          'x-svc-cache': 'true',
        },
        body: JSON.stringify(BODY),
      });
      assert.equal(response.status, 200, await response.clone().text());
      await response.arrayBuffer();
      return { id: response.headers.get('x-generation-id')!, cache: response.headers.get('x-svc-cache-status') };
    },
    async row(path: string, id: string) {
      const headers = { authorization: `Bearer ${MANAGEMENT_KEY}` };
      const response = await fetch(`${url}/api/v1/${path}?id=${id}`, { headers });
      return { status: response.status, body: (await response.json()) as { data?: Record<string, unknown> } };
    },
  });
  const before = at(first.url);
  const [made, given] = [await before.post(), await before.post()];
  assert.deepEqual([made.cache, given.cache], ['MISS', 'HIT']);
  first.signal('SIGKILL');
  await first.exit;

  const second = await startGatewayProcess(t, { home: first.home });
  const again = at(second.url);
  const { body } = await again.row('generation', given.id);
  assert.deepEqual([body.data?.['response_cache_source_id'], body.data?.['total_cost']], [made.id, 0]);
  assert.equal((await again.row('generation', made.id)).status, 200);
  for (const { id } of [made, given])
    assert.ok([200, 404].includes((await again.row('generation/content', id)).status));
  await again.post();
  const last = await again.post();
  assert.equal(last.cache, 'HIT');
  assert.equal((await again.row('generation/content', last.id)).status, 200);
});
