/** Traces of a gateway, as a collector gets them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { type Gateway, INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatFailure, chatStream, chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { OtlpCollector } from '../../src/testing/upstream/otlp-collector.ts';

const CLIENT_SPAN = 'b7ad6b7169203331';
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-0([01])$/;
const [INTERNAL, SERVER, CLIENT] = [1, 2, 3];

const afterAll = { after: (close: () => unknown) => after(close as () => Promise<void>) };
const collector = await new OtlpCollector().listen();
after(() => collector.close());
const start = (env: Record<string, string>, more = {}) =>
  startGateway(afterAll as never, {
    providers: { one: { model: { pricing: { prompt: '0.000003', completion: '0.000015' } } }, two: {} },
    env,
    ...more,
  });
const gateway = await start({
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20team',
  OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
});

let traces = 0;
const newTraceId = () => (++traces).toString(16).padStart(32, 'a');
const ask = (at: Gateway, body: object, headers: Record<string, string> = {}) =>
  at.post('/chat/completions', { messages: [{ role: 'user', content: 'a secret prompt' }], ...body }, headers);

async function traced(body: object, more: Record<string, string> = {}) {
  const traceId = newTraceId();
  const response = await ask(gateway, body, { traceparent: `00-${traceId}-${CLIENT_SPAN}-01`, ...more });
  const text = await response.text();
  gateway.clock.jump(1_000);
  const spans = await collector.trace(traceId);
  const [server, ...others] = spans.filter(({ kind }) => kind === SERVER);
  assert.deepEqual(others, []);
  return { response, text, spans, server: server!, calls: spans.filter(({ kind }) => kind === CLIENT) };
}

test('a request continues the trace of its client, and its upstream gets the span of the call', async () => {
  gateway.upstream.script('one', [chatWhole('a secret answer')]);
  const { spans, server, calls, text } = await traced({ model: 'test/one' }, { tracestate: 'vendor=x' });
  assert.equal(server.name, 'POST /api/v1/chat/completions');
  assert.equal(server.parentSpanId, CLIENT_SPAN);
  assert.equal(server.attributes['http.response.status_code'], 200);
  assert.equal(server.attributes['http.route'], '/api/v1/chat/completions');
  assert.equal(server.attributes['gatehouse.generation.id'], JSON.parse(text).id);
  assert.equal(server.attributes['gen_ai.usage.cost'], 10 * 3e-6 + 2 * 15e-6);
  assert.deepEqual(server.status, { code: 0, message: '' });
  const [call] = calls;
  assert.equal(calls.length, 1);
  assert.equal(call!.name, 'chat test/one');
  assert.equal(call!.attributes['gen_ai.usage.input_tokens'], 10);
  assert.equal(call!.attributes['gen_ai.usage.output_tokens'], 2);
  assert.equal(call!.attributes['gatehouse.attempt.outcome'], 'answered');
  const { headers } = gateway.upstream.requests('one').at(-1)!;
  assert.equal(headers['traceparent'], `00-${server.traceId}-${call!.spanId}-01`);
  assert.equal(headers['tracestate'], 'vendor=x');
  const stages = spans.filter(({ kind }) => kind === INTERNAL);
  assert.deepEqual(
    stages.map(({ name }) => name),
    ['receive', 'admit', 'prepare', 'settle'],
  );
  for (const span of [...stages, ...calls]) {
    assert.equal(span.parentSpanId, server.spanId);
    assert.ok(server.startNano <= span.startNano && span.startNano <= span.endNano && span.endNano <= server.endNano);
  }
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length);
});

test('payloads have the headers and attributes that the operator chose, and no content', async () => {
  const { headers, path, traces: payload } = collector.received[0]!;
  assert.equal(path, '/v1/traces');
  assert.equal(headers['x-tenant'], 'a team');
  const [{ resource, scope }] = payload as [(typeof payload)[0]];
  assert.equal(resource['service.name'], 'gatehouse');
  assert.equal(resource['deployment.environment.name'], 'test');
  assert.match(String(resource['service.instance.id']), /^[0-9a-f-]{36}$/);
  assert.equal(scope.name, 'gatehouse');
  const all = JSON.stringify(collector.received, (_, value) => (typeof value === 'bigint' ? String(value) : value));
  assert.ok(all.includes('gen_ai.usage.input_tokens'));
  for (const secret of ['secret prompt', 'secret answer', INFERENCE_KEY]) assert.ok(!all.includes(secret));
});

test('each attempt is a call of its own, with its outcome', async () => {
  gateway.upstream.script('one', [chatFailure(500)]);
  gateway.upstream.script('two', [chatStream('hello')]);
  const { calls, server } = await traced({ model: 'test/one', models: ['test/two'], stream: true });
  assert.deepEqual(
    calls.map(({ name, attributes, status }) => [name, attributes['gatehouse.attempt.outcome'], status.code]),
    [
      ['chat test/one', 'server', 2],
      ['chat test/two', 'answered', 0],
    ],
  );
  assert.equal(calls[0]!.attributes['http.response.status_code'], 500);
  assert.ok(calls[0]!.endNano <= calls[1]!.startNano);
  assert.equal(server.status.code, 0);
});

test('a request that no endpoint answers is an error of the server, one that is invalid is not', async () => {
  gateway.upstream.script('two', [chatFailure(500)]);
  const failed = await traced({ model: 'test/two' });
  assert.equal(failed.server.status.code, 2);
  assert.equal(failed.server.attributes['http.response.status_code'], failed.response.status);
  const refused = await traced({ model: 'test/none' });
  assert.deepEqual([refused.server.status.code, refused.calls.length], [0, 0]);
  assert.equal(refused.server.attributes['http.response.status_code'], 400);
  const unknown = await traced({ model: 'test/one' }, { authorization: 'Bearer sk-no' });
  assert.deepEqual([unknown.server.attributes['http.response.status_code'], unknown.spans.length], [401, 1]);
});

test('a stream that its client leaves ends its call as given up', async () => {
  gateway.upstream.script('one', [chatStream('hello', [{ gate: 'never' }])]);
  const traceId = newTraceId();
  const leaving = new AbortController();
  const before = gateway.upstream.requests('one').length;
  const asked = fetch(`${gateway.api}/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${INFERENCE_KEY}`,
      'content-type': 'application/json',
      traceparent: `00-${traceId}-${CLIENT_SPAN}-01`,
    },
    body: JSON.stringify({ model: 'test/one', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
    signal: leaving.signal,
  });
  await until(() => gateway.upstream.requests('one').length > before, 'the upstream is asked');
  leaving.abort();
  await assert.rejects(asked);
  const spans = await collector.trace(traceId);
  const call = spans.find(({ kind }) => kind === CLIENT)!;
  assert.equal(call.attributes['gatehouse.attempt.outcome'], 'given_up');
  assert.equal(spans.find(({ kind }) => kind === SERVER)!.attributes['gatehouse.cancelled'], true);
});

test('a trace that its client does not sample is passed on and not sent', async () => {
  gateway.upstream.script('one', [chatWhole('hello'), chatWhole('hello')]);
  const [unsampled, malformed] = [newTraceId(), 'no-trace'];
  await (await ask(gateway, { model: 'test/one' }, { traceparent: `00-${unsampled}-${CLIENT_SPAN}-00` })).text();
  const { headers } = gateway.upstream.requests('one').at(-1)!;
  assert.match(headers['traceparent'] as string, new RegExp(`^00-${unsampled}-[0-9a-f]{16}-00$`));
  await (await ask(gateway, { model: 'test/one' }, { traceparent: malformed })).text();
  const [, own, , flags] = TRACEPARENT.exec(gateway.upstream.requests('one').at(-1)!.headers['traceparent'] as string)!;
  assert.equal(flags, '1');
  const [server] = (await collector.trace(own!)).filter(({ kind }) => kind === SERVER);
  assert.equal(server!.parentSpanId, undefined);
  assert.ok(collector.spans.every(({ traceId }) => traceId !== unsampled));
});

test('scrapers that ask for the OpenMetrics format get exemplars', async () => {
  gateway.upstream.script('one', [chatWhole('hello')]);
  const { server } = await traced({ model: 'test/one' });
  const scrape = async (accept: string) => {
    const headers = { authorization: `Bearer ${MANAGEMENT_KEY}`, accept };
    const response = await fetch(`${gateway.url}/metrics`, { headers });
    return { type: response.headers.get('content-type')!, text: await response.text() };
  };
  const open = await scrape('application/openmetrics-text;version=1.0.0,text/plain;q=0.5');
  assert.match(open.type, /^application\/openmetrics-text/);
  assert.match(open.text, /\n# EOF\n$/);
  const exemplar = `# {trace_id="${server.traceId}",span_id="${server.spanId}"} `;
  const marked = open.text.split('\n').filter((line) => line.includes(exemplar));
  assert.ok(marked.some((line) => line.startsWith('gatehouse_request_duration_seconds_bucket{')));
  for (const line of marked) assert.match(line, /_bucket\{[^}]*\} \d+ # \{[^}]*\} [\d.e-]+ \d{10}(?:\.\d+)?$/);
  assert.match(open.text, /^gatehouse_requests_total\{/m);
  assert.match(open.text, /^# TYPE gatehouse_requests counter$/m);
  assert.match(open.text, /^process_cpu_seconds_total /m);
  const plain = await scrape('text/plain');
  assert.match(plain.type, /^text\/plain/);
  assert.ok(!plain.text.includes('trace_id'));
  assert.match(plain.text, /^# TYPE gatehouse_requests_total counter$/m);
  assert.match(plain.text, /^process_cpu_seconds_total /m);
});

test('probes are not traced', async () => {
  const traceId = newTraceId();
  const headers = { traceparent: `00-${traceId}-${CLIENT_SPAN}-01` };
  await (await fetch(`${gateway.url}/health`, { headers })).text();
  gateway.upstream.script('one', [chatWhole('hello')]);
  await traced({ model: 'test/one' });
  assert.ok(collector.spans.every((span) => span.traceId !== traceId));
});

test('a collector that is dead or refuses delays no request, and is reported once', async () => {
  const dead = await new OtlpCollector().listen();
  after(() => dead.close());
  dead.status = null;
  const lines: string[] = [];
  const log = createLog({ stream: { write: (line) => lines.push(line), isTTY: false }, level: 'warn' });
  const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${dead.url}/otlp`, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' };
  const slow = await start(env, { log });
  slow.upstream.script('one', [{ ...chatWhole('hello'), repeat: true }]);
  const reports = () => {
    log.flush();
    return lines
      .join('')
      .split('\n')
      .filter((line) => line.includes('traces are not delivered'));
  };
  assert.equal((await ask(slow, { model: 'test/one' })).status, 200);
  await until(() => dead.requests === 1, 'a delivery is tried');
  assert.equal((await ask(slow, { model: 'test/one' })).status, 200);
  slow.clock.jump(11_000);
  await until(() => reports().length === 1, 'the failure is logged');
  dead.status = 503;
  slow.clock.jump(2_000);
  await until(() => dead.requests === 2, 'a second delivery is tried');
  assert.equal((await ask(slow, { model: 'test/one' })).status, 200);
  dead.status = 200;
  slow.clock.jump(60_000);
  await until(() => dead.spans.filter(({ kind }) => kind === SERVER).length === 3, 'nothing is lost');
  assert.equal(dead.received[0]!.path, '/otlp');
  assert.equal(reports().length, 1);
});

test('without an endpoint nothing is traced, and upstreams get no trace context', async () => {
  const plain = await start({ OTEL_SERVICE_NAME: 'unused', OTEL_TRACES_SAMPLER: 'always_on' });
  assert.equal(plain.config.tracing, null);
  plain.upstream.script('one', [chatWhole('hello')]);
  const traceId = newTraceId();
  await (await ask(plain, { model: 'test/one' }, { traceparent: `00-${traceId}-${CLIENT_SPAN}-01` })).text();
  assert.equal(plain.upstream.requests('one')[0]!.headers['traceparent'], undefined);
});
