/** The log has one line for each request: request, outcome and cost; no key, no prompt. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { hashToken } from '../../src/access/index.ts';
import { createLog, type LogOptions } from '../../src/base/log.ts';
import { until } from '../../src/testing/clock/clock.ts';
import {
  type Gateway,
  INFERENCE_KEY,
  MANAGEMENT_KEY,
  startGateway,
  UPSTREAM_KEY,
} from '../../src/testing/gateway/gateway.ts';
import { chatChunk, chatFailure, chatStream, chatWhole } from '../../src/testing/upstream/chat-upstream.ts';

type Line = Record<string, unknown> & { level: string; event: string };

interface Logged {
  gateway: Gateway;
  text(): string;
  /** Lines of requests so far, once there are so many. */
  requests(count: number): Promise<Line[]>;
}

async function logged(
  t: TestContext,
  env: Record<string, string> = {},
  options: Partial<LogOptions> & { isTTY?: boolean } = {},
): Promise<Logged> {
  let text = '';
  const write = (line: string) => {
    text += line;
  };
  const log = createLog({ stream: { write, isTTY: options.isTTY ?? false }, level: 'debug', ...options });
  const gateway = await startGateway(t, { providers: { one: {}, two: {} }, env, log });
  const requests = () => {
    log.flush();
    const lines: Line[] =
      text === ''
        ? []
        : text
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line));
    return lines.filter(({ event }) => event === 'request');
  };
  return {
    gateway,
    text: () => text,
    async requests(count) {
      await until(() => requests().length >= count, `${count} lines`);
      return requests();
    },
  };
}

const ask = (gateway: Gateway, body: object, headers = {}) =>
  gateway.post('/chat/completions', { messages: [{ role: 'user', content: 'hi' }], ...body }, headers);

test('the log line of a response has model, provider, tokens, cost, attempts and the masked key', async (t) => {
  const { gateway, requests } = await logged(t);
  gateway.upstream.script('one', [chatFailure(500)]);
  gateway.upstream.script('two', [chatStream('hello')]);
  const body = { model: 'test/one', models: ['test/two'], stream: true };
  const answer = await ask(gateway, body, { 'x-request-id': 'mine-1' });
  await answer.text();
  const [line] = await requests(1);
  const { time, duration_ms, first_token_ms, key, key_hash, ...rest } = line!;
  assert.deepEqual(rest, {
    level: 'info',
    event: 'request',
    method: 'POST',
    path: '/api/v1/chat/completions',
    status: 200,
    client: '127.0.0.1',
    generation: answer.headers.get('x-generation-id'),
    model: 'test/two',
    provider: 'two',
    streamed: true,
    prompt_tokens: 10,
    completion_tokens: 2,
    cost_usd: 0.00006,
    attempts: 2,
    request_id: 'mine-1',
  });
  assert.match(String(time), /^20\d\d-\d\d-\d\dT/);
  for (const ms of [duration_ms, first_token_ms]) assert.ok(typeof ms === 'number' && ms >= 0, String(ms));
  assert.equal(key, 'sk-...iii');
  assert.equal(key_hash, hashToken(INFERENCE_KEY).slice(0, 12));
});

test("the level shows how it ended: info, warn for the client's fault, error for ours; probes are for debugging", async (t) => {
  const { gateway, requests } = await logged(t);
  gateway.upstream.script('one', [
    chatWhole('hello'),
    chatFailure(500),
    { headers: { 'content-type': 'text/event-stream' }, chunks: [chatChunk({ content: 'a' })], end: 'cut' },
  ]);
  for (const body of [
    { model: 'test/one' },
    { model: 'test/one' },
    { model: 'test/one', stream: true },
    { model: 7 },
  ]) {
    await (await ask(gateway, body)).text();
  }
  await (await gateway.get('/keys', 'sk-svc-v1-unknown')).text();
  await (await fetch(`${gateway.url}/health`)).text();
  await (await fetch(`${gateway.url}/metrics`)).text();
  const told = (await requests(7)).map(({ level, status, error, path }) => [path, level, status, error]);
  const chat = '/api/v1/chat/completions';
  assert.deepEqual(told, [
    [chat, 'info', 200, undefined],
    [chat, 'error', 502, 'provider_unavailable'],
    [chat, 'error', 200, 'provider_unavailable'],
    [chat, 'warn', 400, undefined],
    ['/api/v1/keys', 'warn', 401, undefined],
    ['/health', 'debug', 200, undefined],
    ['/metrics', 'warn', 401, undefined],
  ]);
});

test('a client disconnect is logged as cancelled, with the cost so far', async (t) => {
  const { gateway, requests } = await logged(t);
  const abort = new AbortController();
  gateway.upstream.script('two', [{ end: 'stall-before-headers' }]);
  const gone = fetch(`${gateway.api}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'test/two', messages: [{ role: 'user', content: 'hi' }] }),
    signal: abort.signal,
  });
  await until(() => gateway.upstream.requests('two').length === 1, 'the upstream is asked');
  abort.abort();
  await assert.rejects(gone);
  const lines = await requests(1);
  const line = lines.find(({ model }) => model === 'test/two')!;
  assert.deepEqual([line.level, line['cancelled'], line['status'], line['estimated']], ['info', true, 0, true]);
  assert.ok(Number(line['cost_usd']) > 0);
});

test('the log contains no key, prompt, response or query, even if a path contained a key', async (t) => {
  const { gateway, requests, text } = await logged(t);
  gateway.upstream.script('one', [chatWhole('the answer'), chatFailure(400, `bad key ${UPSTREAM_KEY}`)]);
  const messages = [{ role: 'user', content: 'the prompt' }];
  await (await ask(gateway, { model: 'test/one', messages })).text();
  await (await ask(gateway, { model: 'test/one', messages })).text();
  await (await gateway.get(`/keys/${MANAGEMENT_KEY}?key=${INFERENCE_KEY}`, MANAGEMENT_KEY)).text();
  await (await gateway.get(`/${'x'.repeat(190)}/${UPSTREAM_KEY}`)).text();
  const lines = await requests(4);
  assert.match(String(lines[2]?.['path']), /^\/api\/v1\/keys\/\{hash\}$/);
  for (const secret of [
    INFERENCE_KEY,
    MANAGEMENT_KEY,
    UPSTREAM_KEY,
    UPSTREAM_KEY.slice(0, 12),
    'the prompt',
    'the answer',
  ]) {
    assert.ok(!text().includes(secret), secret);
  }
});

test('the lines can be switched off, or thinned out while every failure keeps its line', async (t) => {
  const off = await logged(t, { GATEHOUSE_LOG_REQUESTS: 'off' });
  await (await off.gateway.get('/key')).text();
  assert.deepEqual(await off.requests(0), []);
  await off.gateway.close();
  assert.ok(!off.text().includes('"event":"request"'));
  const thin = await logged(t, { GATEHOUSE_LOG_REQUESTS: '0.25' });
  for (let count = 0; count < 8; count += 1) await (await thin.gateway.get('/key')).text();
  for (let count = 0; count < 3; count += 1) await (await thin.gateway.get('/key', 'unknown')).text();
  const statuses = (await thin.requests(5)).map(({ status }) => status);
  assert.deepEqual(statuses, [200, 200, 401, 401, 401]);
});

test('what has gathered is written when the gateway ends', async (t) => {
  const { gateway, text } = await logged(t);
  await (await gateway.get('/key')).text();
  await gateway.close();
  assert.equal(text().split('"event":"request"').length - 1, 1);
});

test('on a terminal a line is for people', async (t) => {
  const { gateway, text } = await logged(t, {}, { isTTY: true });
  await (await gateway.get('/key')).text();
  await until(() => text().includes('request '), 'a line');
  assert.match(
    text(),
    /\d\d:\d\d:\d\d\.\d{3} info {2}request method=GET path=\/api\/v1\/key status=200 duration_ms=[\d.]+ client=127\.0\.0\.1 key=/,
  );
});
