/** A catalog of 5,000 endpoints and 100,000 keys: start, lists and requests keep their times. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../../src/testing/database/rows.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { p95, scaleSize } from '../process/scale-size.ts';

const MODELS_OF_A_PROVIDER = 10;
const ENDPOINTS_OF_A_MODEL = 5;
const ASKED = 200;

test('5,000 endpoints and 100,000 keys keep their times', async (t) => {
  const endpoints = scaleSize('ENDPOINTS', 5_000);
  const keyCount = scaleSize('KEYS', 100_000);
  const budget = scaleSize('P95_MS', 100);
  const providers: Record<string, { models: object[] }> = {};
  const modelIds = new Set<string>();
  for (let provider = 0; provider < endpoints / MODELS_OF_A_PROVIDER; provider++) {
    const models = Array.from({ length: MODELS_OF_A_PROVIDER }, (_, at) => {
      const id = `test/model-${Math.floor(provider / ENDPOINTS_OF_A_MODEL) * MODELS_OF_A_PROVIDER + at}`;
      modelIds.add(id);
      return {
        id,
        upstream_id: id.slice(5),
        context_length: 200_000,
        pricing: { prompt: '0.000001', completion: '0.000002' },
      };
    });
    providers[`p${provider}`] = { models };
  }
  const startedAt = performance.now();
  const gateway = await startGateway(t, { providers });
  const startMs = performance.now() - startedAt;
  for (const name of Object.keys(providers)) gateway.upstream.script(name, [{ ...chatWhole('hi'), repeat: true }]);

  const client = await connect(gateway.target);
  const { rows: columns } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute where attrelid = 'api_keys'::regclass and attnum > 0 and not attisdropped`,
  );
  const varied: Record<string, string> = {
    id: 'gen_random_uuid()',
    hash: `encode(sha256(('sk-scale-' || i)::bytea), 'hex')`,
    name: `'key ' || i`,
    created_at: `k.created_at + i * interval '1 millisecond'`,
  };
  const names = columns.map(({ name }) => name);
  await client.query(
    `insert into api_keys (${names.join(', ')}) select ${names.map((name) => varied[name] ?? `k.${name}`).join(', ')}
     from (select * from api_keys where kind = 'inference' limit 1) k, generate_series(1, $1::bigint) i`,
    [keyCount],
  );
  await client.query('analyze api_keys');
  await client.end();

  const models = [...modelIds];
  const ask = async (key: string, at: number) => {
    const body = { model: models[(at * 7) % models.length], messages: [{ role: 'user', content: 'hi' }] };
    const response = await fetch(`${gateway.api}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(response.status, 200, await response.text());
  };
  const list = async (route: string) => {
    const response = await gateway.get(route, MANAGEMENT_KEY);
    assert.equal(response.status, 200, `${route}: ${(await response.text()).slice(0, 200)}`);
  };
  const times = {
    'a request of a key that is not in memory': await timed((at) => ask(`sk-scale-${1 + ((at * 499) % keyCount)}`, at)),
    'a request of a key that is': await timed((at) => ask(`sk-scale-${1 + (((at % 20) * 499) % keyCount)}`, at)),
    'a page of keys': await timed(() => list('/keys')),
  };
  const modelList = await timed(() => list('/models'), 5);
  const shown = Object.entries(times).map(([name, ms]) => `${name} p95 ${ms.toFixed(1)} ms`);
  t.diagnostic(
    `${endpoints} endpoints of ${models.length} models, ${keyCount} keys: start ${Math.round(startMs)} ms, ${shown.join(', ')}, ` +
      `/models p95 ${modelList.toFixed(1)} ms`,
  );
  for (const [name, ms] of Object.entries(times)) assert.ok(ms < budget, `${name}: p95 ${ms.toFixed(1)} ms`);
});

/** The p95 of a number of calls, one after the other, in milliseconds. */
async function timed(call: (at: number) => Promise<void>, count = ASKED): Promise<number> {
  const values: number[] = [];
  for (let at = 0; at < count; at++) {
    const before = performance.now();
    await call(at);
    values.push(performance.now() - before);
  }
  return p95(values);
}
