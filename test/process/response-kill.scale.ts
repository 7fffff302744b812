/** kill -9 of the process that runs a response in the background: the response fails and is charged once, and queued responses still run. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { until } from '../../src/testing/clock/clock.ts';
import { databaseUrl, emptyDatabase } from '../../src/testing/database/database.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import type { Json } from '../../src/testing/gateway/sdk.ts';
import { gatewayHome, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { type Plan, PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';

/** A promise of the guide, and the time of a busy machine. */
const NOTICED_MS = 60_000;

test('a response whose process is killed has failed in every process, is not run again, and has one row', async (t) => {
  const upstream = await new PlannedUpstream().listen();
  t.after(() => upstream.close());
  const target = await emptyDatabase(t);
  const env = { DATABASE_URL: databaseUrl(target), GATEHOUSE_KEK: Buffer.alloc(32, 1).toString('base64') };
  const yaml = plannedYaml(upstream.url);
  const home = await gatewayHome(t, false);
  const first = await startGatewayProcess(t, { home, env, yaml });
  const clientAt = (url: string) => new OpenAI({ baseURL: `${url}/v1`, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const asked = () => upstream.log.filter(({ what }) => what === 'asked').length;
  const plan: Plan = { tag: 'held', promptTokens: 10, completionTokens: 5, hold: 'head' };
  const input = JSON.stringify(plan);
  const request = { model: 'test/planned', input, max_output_tokens: 20, background: true } as const;
  const { id } = await clientAt(first.url).responses.create(request);
  await until(() => asked() === 1, 'the response runs');
  const second = await startGatewayProcess(t, { home: await gatewayHome(t, false), env, yaml });
  const other = clientAt(second.url);
  assert.equal((await other.responses.retrieve(id)).status, 'in_progress');
  first.signal('SIGKILL');
  await first.exit;
  const failed: Json = await until(
    async () => {
      const response = await other.responses.retrieve(id);
      return response.status !== 'in_progress' && response;
    },
    'the death is noticed',
    NOTICED_MS,
  );
  assert.deepEqual([failed.status, failed.error.code], ['failed', 'server_error']);
  upstream.release();

  // The second process runs what comes after it.
  const next: Plan = { tag: 'next', promptTokens: 10, completionTokens: 5 };
  const queued = await other.responses.create({ ...request, input: JSON.stringify(next) });
  await until(
    async () => (await other.responses.retrieve(queued.id)).status === 'completed',
    'the next one',
    NOTICED_MS,
  );
  assert.equal(asked(), 2);

  const again = await startGatewayProcess(t, { home, env, yaml });
  const row: Json = await until(async () => {
    const found = await fetch(`${again.url}/api/v1/generation?id=${id}`, {
      headers: { authorization: `Bearer ${INFERENCE_KEY}` },
    });
    return found.status === 200 && ((await found.json()) as Json).data;
  }, 'the row of the killed run');
  assert.ok(row.total_cost > 0);
  assert.equal(asked(), 2);
});
