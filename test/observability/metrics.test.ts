/** GET /metrics: metrics of a whole gateway, access to them, and the sum over several processes. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import {
  type Gateway,
  type GatewayOptions,
  INFERENCE_KEY,
  MANAGEMENT_KEY,
  startGateway,
} from '../../src/testing/gateway/gateway.ts';
import { startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { chatFailure, chatStream, chatWhole } from '../../src/testing/upstream/chat-upstream.ts';

const TOKEN = 'scraper-token-0123456789abcdef';

async function scrape(url: string, key?: string): Promise<{ status: number; type: string | null; text: string }> {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/metrics`, { headers });
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
}

/** Every sample by its name with labels in alphabetical order; read with no help of the library that wrote it. */
function samplesOf(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? assert.fail(line);
    const sorted = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([pair]) => pair).toSorted();
    const key = sorted.length === 0 ? name! : `${name}{${sorted.join(',')}}`;
    assert.ok(!samples.has(key), `${key} twice`);
    samples.set(key, value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value));
  }
  return samples;
}

async function read(gateway: Gateway, key = MANAGEMENT_KEY): Promise<Map<string, number>> {
  const { status, text } = await scrape(gateway.url, key);
  assert.equal(status, 200, text);
  return samplesOf(text);
}

const start = (t: TestContext, options: GatewayOptions = {}) =>
  startGateway(t, { providers: { one: {}, two: {} }, ...options });
const ask = (gateway: Gateway, body: object) =>
  gateway.post('/chat/completions', { messages: [{ role: 'user', content: 'hi' }], ...body });

test('requests, tokens, cost and attempts are counted by provider and model', async (t) => {
  const gateway = await start(t);
  gateway.upstream.script('one', [chatWhole('hello'), chatStream('hello'), chatFailure(500)]);
  gateway.upstream.script('two', [chatWhole('hello')]);
  await (await ask(gateway, { model: 'test/one' })).text();
  await (await ask(gateway, { model: 'test/one', stream: true })).text();
  await (await ask(gateway, { model: 'test/one', models: ['test/two'] })).text();
  await (await ask(gateway, { model: 'test/none' })).text();
  await (await fetch(`${gateway.url}/nowhere`)).text();
  const samples = await read(gateway);
  const one = 'model="test/one",provider="one"';
  const two = 'model="test/two",provider="two"';
  const chat = 'operation="createChatCompletion"';
  assert.equal(samples.get(`gatehouse_requests_total{model="test/one",${chat},provider="one",status="200"}`), 2);
  assert.equal(samples.get(`gatehouse_requests_total{model="test/two",${chat},provider="two",status="200"}`), 1);
  assert.equal(samples.get(`gatehouse_requests_total{${chat},status="400"}`), 1);
  assert.equal(samples.get('gatehouse_requests_total{operation="none",status="404"}'), 1);
  assert.equal(samples.get(`gatehouse_tokens_total{kind="input",${one}}`), 20);
  assert.equal(samples.get(`gatehouse_tokens_total{kind="output",${one}}`), 4);
  assert.equal(samples.get(`gatehouse_cost_usd_total{${two}}`), 10 * 3e-6 + 2 * 15e-6);
  assert.equal(samples.get(`gatehouse_upstream_attempts_total{model="test/one",outcome="answered",provider="one"}`), 2);
  assert.equal(samples.get(`gatehouse_upstream_attempts_total{model="test/one",outcome="server",provider="one"}`), 1);
  assert.equal(samples.get(`gatehouse_upstream_attempts_total{model="test/two",outcome="answered",provider="two"}`), 1);
  assert.equal(samples.get(`gatehouse_request_duration_seconds_count{model="test/one",${chat},provider="one"}`), 2);
  assert.equal(
    samples.get(`gatehouse_request_duration_seconds_bucket{le="+Inf",model="test/one",${chat},provider="one"}`),
    2,
  );
  assert.equal(samples.get(`gatehouse_time_to_first_token_seconds_count{model="test/one",${chat},provider="one"}`), 1);
});

test('durations fall into their buckets, cumulatively', async (t) => {
  const gateway = await start(t);
  gateway.upstream.script('one', [chatStream('hello', [{ gate: 'late' }])]);
  const asked = ask(gateway, { model: 'test/one', stream: true });
  await until(() => gateway.upstream.requests('one').length === 1, 'the upstream is asked');
  gateway.clock.jump(40_000);
  gateway.upstream.open('late');
  await (await asked).text();
  const samples = await read(gateway);
  const labels = 'model="test/one",operation="createChatCompletion",provider="one"';
  const bucket = (name: string, le: string) => samples.get(`gatehouse_${name}_bucket{le="${le}",${labels}}`);
  assert.deepEqual(
    ['20', '30', '60', '+Inf'].map((le) => bucket('time_to_first_token_seconds', le)),
    [0, 0, 1, 1],
  );
  assert.deepEqual(
    ['30', '60', '600', '+Inf'].map((le) => bucket('request_duration_seconds', le)),
    [0, 1, 1, 1],
  );
  const sum = samples.get(`gatehouse_request_duration_seconds_sum{${labels}}`)!;
  assert.ok(sum >= 40 && sum < 60, String(sum));
});

test('a client that leaves is counted, and so is the call that was given up for it', async (t) => {
  const gateway = await start(t);
  gateway.upstream.script('one', [{ end: 'stall-before-headers' }]);
  const abort = new AbortController();
  const gone = fetch(`${gateway.api}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'test/one', messages: [{ role: 'user', content: 'hi' }] }),
    signal: abort.signal,
  });
  await until(() => gateway.upstream.requests('one').length === 1, 'the upstream is asked');
  assert.equal((await read(gateway)).get('gatehouse_open_requests'), 2);
  abort.abort();
  await assert.rejects(gone);
  const labels = 'model="test/one",operation="createChatCompletion",provider="one"';
  let samples = new Map<string, number>();
  await until(async () => {
    samples = await read(gateway);
    return samples.has(`gatehouse_requests_cancelled_total{${labels}}`);
  }, 'the end is counted');
  assert.equal(samples.get(`gatehouse_requests_total{${labels},status="0"}`), 1);
  assert.equal(samples.get(`gatehouse_upstream_attempts_total{model="test/one",outcome="given_up",provider="one"}`), 1);
  assert.equal(samples.get('gatehouse_open_requests'), 1);
});

test('an answer from the response cache is counted as one, and costs and uses nothing', async (t) => {
  const gateway = await start(t);
  gateway.upstream.script('one', [chatWhole('hello')]);
  const body = { model: 'test/one', messages: [{ role: 'user', content: 'hi' }] };
  for (const status of ['MISS', 'HIT']) {
    const response = await gateway.post('/chat/completions', body, { 'x-svc-cache': 'true' });
    assert.equal(response.headers.get('x-svc-cache-status'), status);
    await response.text();
  }
  const samples = await read(gateway);
  const chat = 'model="test/one",operation="createChatCompletion",provider="one"';
  assert.equal(samples.get(`gatehouse_requests_total{${chat},status="200"}`), 2);
  assert.equal(samples.get(`gatehouse_requests_cached_total{${chat}}`), 1);
  assert.equal(samples.get('gatehouse_tokens_total{kind="output",model="test/one",provider="one"}'), 2);
  assert.equal(samples.get('gatehouse_upstream_attempts_total{model="test/one",outcome="answered",provider="one"}'), 1);
});

test('the state of the process and of its database is reported', async (t) => {
  const gateway = await start(t);
  const samples = await read(gateway);
  for (const [name, value] of Object.entries({
    gatehouse_database_up: 1,
    gatehouse_processes: 1,
    gatehouse_open_generations: 0,
    gatehouse_ledger_waiting_rows: 0,
    gatehouse_contents_dropped_total: 0,
    gatehouse_cached_answers_dropped_total: 0,
    gatehouse_destination_records_dropped_total: 0,
  })) {
    assert.equal(samples.get(name), value, name);
  }
  for (const name of [
    'gatehouse_journal_bytes',
    'process_cpu_seconds_total',
    'process_resident_memory_bytes',
    'process_start_time_seconds',
    'nodejs_eventloop_lag_p99_seconds',
  ]) {
    assert.ok(samples.has(name), name);
  }
});

test('only a management key or the metrics token can read the metrics', async (t) => {
  const gateway = await start(t, { env: { GATEHOUSE_METRICS_TOKEN: TOKEN } });
  const statuses = async (...keys: (string | undefined)[]) =>
    Promise.all(keys.map(async (key) => (await scrape(gateway.url, key)).status));
  assert.deepEqual(await statuses(MANAGEMENT_KEY, TOKEN), [200, 200]);
  assert.deepEqual(await statuses(undefined, INFERENCE_KEY, `${TOKEN}x`, TOKEN.slice(1)), [401, 403, 401, 401]);
  // The token opens nothing else.
  assert.equal((await gateway.get('/keys', TOKEN)).status, 401);
  assert.match((await scrape(gateway.url, TOKEN)).type ?? '', /^text\/plain; version=0\.0\.4/);
});

test('metrics can be public or disabled', async (t) => {
  const open = await start(t, { env: { GATEHOUSE_METRICS: 'open' } });
  assert.deepEqual([(await scrape(open.url)).status, (await scrape(open.url, 'anything')).status], [200, 200]);
  await open.close();
  const off = await start(t, { env: { GATEHOUSE_METRICS: 'off', GATEHOUSE_METRICS_TOKEN: TOKEN } });
  assert.deepEqual([(await scrape(off.url, TOKEN)).status, (await scrape(off.url, MANAGEMENT_KEY)).status], [401, 404]);
});

test('no key, prompt or name of a user is among the figures', async (t) => {
  const gateway = await start(t);
  gateway.upstream.script('one', [chatWhole('the answer')]);
  const body = {
    model: 'test/one',
    user: 'somebody',
    session_id: 'a-session',
    messages: [{ role: 'user', content: 'the prompt' }],
  };
  await (await ask(gateway, body)).text();
  await (await ask(gateway, { model: `made-up/${INFERENCE_KEY}` })).text();
  const { text } = await scrape(gateway.url, MANAGEMENT_KEY);
  for (const secret of [
    INFERENCE_KEY,
    MANAGEMENT_KEY,
    'somebody',
    'a-session',
    'the prompt',
    'the answer',
    'made-up',
  ]) {
    assert.ok(!text.includes(secret), secret);
  }
});

test('with several processes a scrape of any of them reports the sum of all', async (t) => {
  const gateway = await startGatewayProcess(t, { yaml: {}, env: { GATEHOUSE_WORKERS: '2' } });
  const body = JSON.stringify({ model: 'simulated/echo', messages: [{ role: 'user', content: 'hi' }] });
  const headers = { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json', connection: 'close' };
  for (let count = 0; count < 8; count += 1) {
    const response = await fetch(`${gateway.url}/api/v1/chat/completions`, { method: 'POST', headers, body });
    assert.equal(response.status, 200, await response.text());
  }
  for (let count = 0; count < 4; count += 1) {
    const response = await fetch(`${gateway.url}/metrics`, {
      headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, connection: 'close' },
    });
    const samples = samplesOf(await response.text());
    const answered = [...samples].filter(([name]) =>
      /^gatehouse_requests_total\{.*createChatCompletion.*"200"/.test(name),
    );
    assert.deepEqual(
      answered.map(([, value]) => value),
      [8],
    );
    assert.equal(samples.get('gatehouse_processes'), 2);
    assert.equal(samples.get('gatehouse_database_up'), 1);
    assert.ok((samples.get('process_resident_memory_bytes') ?? 0) > 100_000_000);
  }
});
