/** Rate limits of keys and workspaces, seen by clients: through HTTP, in every format, over two processes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Gateway, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { startGatewayProcess } from '../../src/testing/process/gateway-process.ts';

type Body = Record<string, unknown>;

async function manage(gateway: Pick<Gateway, 'api'>, method: string, route: string, body?: unknown): Promise<Body> {
  const response = await fetch(gateway.api + route, {
    method,
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Body;
  assert.ok(response.ok, JSON.stringify(answer));
  return answer;
}

async function keyWith(gateway: Pick<Gateway, 'api'>, rate_limits: Body): Promise<{ key: string; hash: string }> {
  const { key, data } = await manage(gateway, 'POST', '/keys', { name: 'limited', rate_limits });
  assert.deepEqual((data as Body)['rate_limits'], Object.keys(rate_limits).length === 0 ? null : rate_limits);
  return { key: key as string, hash: (data as Body)['hash'] as string };
}

const CHAT = { model: 'test/a', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] };
const REPLY = {
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
};

async function gatewayWith(t: Parameters<typeof startGateway>[0], options: Parameters<typeof startGateway>[1] = {}) {
  const gateway = await startGateway(t, { providers: { a: {} }, ...options });
  gateway.upstream.script('a', { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(REPLY)] });
  return gateway;
}

const send = (gateway: Gateway, key: string, route = '/chat/completions', body: unknown = CHAT) =>
  gateway.post(route, body, { authorization: `Bearer ${key}` });

test('answers of the response cache, counts of tokens and failures of upstreams say what is left of a limit, too', async (t) => {
  const gateway = await startGateway(t, { providers: { a: {}, down: {} } });
  const json = { 'content-type': 'application/json' };
  gateway.upstream.script('a', { headers: json, chunks: [JSON.stringify(REPLY)], repeat: true });
  gateway.upstream.script('down', { status: 500, chunks: ['{}'], repeat: true });
  const { key } = await keyWith(gateway, { requests_per_minute: 100 });
  const told = async (route: string, body: unknown, headers: Record<string, string> = {}) => {
    const answer = await gateway.post(route, body, { authorization: `Bearer ${key}`, ...headers });
    await answer.arrayBuffer();
    return [answer.status, answer.headers.get('x-svc-cache-status'), answer.headers.get('x-ratelimit-remaining')];
  };
  const cached = { 'x-svc-cache': 'true' };
  assert.deepEqual(await told('/chat/completions', CHAT, cached), [200, 'MISS', '99']);
  assert.deepEqual(await told('/chat/completions', CHAT, cached), [200, 'HIT', '98']);
  assert.deepEqual(await told('/chat/completions', { ...CHAT, stream: true }), [200, null, '97']);
  assert.deepEqual(await told('/chat/completions', { ...CHAT, model: 'test/down' }), [502, null, '96']);
  assert.deepEqual(await told('/chat/completions', { ...CHAT, model: 'test/down' }, cached), [502, 'MISS', '95']);
  const counted = { model: 'test/a', messages: [{ role: 'user', content: 'hi' }] };
  assert.deepEqual(await told('/messages/count_tokens', counted), [200, null, '94']);
});

test('past its requests a key gets 429 that says when to come back, and answers say what is left', async (t) => {
  const gateway = await gatewayWith(t);
  const { key } = await keyWith(gateway, { requests_per_minute: 2 });
  for (const left of ['1', '0']) {
    const answer = await send(gateway, key);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('x-ratelimit-limit'), '2');
    assert.equal(answer.headers.get('x-ratelimit-remaining'), left);
    await answer.arrayBuffer();
  }
  const refused = await send(gateway, key);
  const { error } = (await refused.json()) as { error: { code: number; message: string; metadata: Body } };
  assert.equal(refused.status, 429);
  const reset = Number(refused.headers.get('x-ratelimit-reset'));
  assert.equal(reset % 60_000, 0);
  const wait = Number(refused.headers.get('retry-after'));
  assert.ok(wait >= 1 && wait <= 60);
  assert.match(error.message, /2 requests per minute of the key/);
  assert.equal(error.metadata['error_type'], 'rate_limit_exceeded');
  assert.deepEqual(error.metadata['headers'], {
    'X-RateLimit-Limit': '2',
    'X-RateLimit-Remaining': '0',
    'X-RateLimit-Reset': String(reset),
  });
  gateway.clock.jump(60_000);
  assert.equal((await send(gateway, key)).status, 200);
});

test('every inference operation counts, and each refuses in its own format', async (t) => {
  const gateway = await gatewayWith(t);
  const { key } = await keyWith(gateway, { requests_per_day: 1 });
  assert.equal((await send(gateway, key)).status, 200);
  const turns = { model: 'test/a', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] };
  const bodies: Record<string, unknown> = {
    '/chat/completions': turns,
    '/completions': { model: 'test/a', prompt: 'hi' },
    '/messages': turns,
    '/messages/count_tokens': turns,
    '/responses': { model: 'test/a', input: 'hi' },
    '/embeddings': { model: 'test/a', input: 'hi' },
    '/rerank': { model: 'test/a', query: 'q', documents: ['d'] },
    '/images': { model: 'test/a', prompt: 'p' },
    '/images/generations': { model: 'test/a', prompt: 'p' },
  };
  for (const [route, body] of Object.entries(bodies)) {
    const refused = await send(gateway, key, route, body);
    const text = await refused.text();
    assert.equal(refused.status, 429, `${route}: ${text}`);
    assert.ok(refused.headers.get('retry-after'), route);
    assert.equal(refused.headers.get('x-ratelimit-limit'), '1', route);
    assert.match(text, /rate_limit/, route);
  }
});

test('tokens are held before a call and settled after it; what could never fit is 400', async (t) => {
  const gateway = await gatewayWith(t);
  const { key } = await keyWith(gateway, { tokens_per_hour: 2_500 });
  // Each could use 256 for what providers add, its own bytes and 50; each uses 120.
  for (let n = 0; n < 5; n++) {
    const answer = await send(gateway, key);
    assert.equal(answer.status, 200, await answer.text());
  }
  const never = await send(gateway, key, '/chat/completions', { ...CHAT, max_tokens: 2_400 });
  assert.equal(never.status, 400);
  let passed = 5;
  let refused = await send(gateway, key);
  for (; refused.status === 200; passed++) refused = await send(gateway, key);
  assert.equal(refused.status, 429);
  const bound = 256 + JSON.stringify(CHAT).length + 50;
  assert.ok(passed * 120 + bound > 2_500 && (passed - 1) * 120 + bound <= 2_500, `${passed} passed`);
  assert.match(await refused.text(), /2500 tokens per hour of the key/);
  assert.equal(refused.headers.get('x-ratelimit-limit'), '2500');
});

test('a nearly used limit of tokens makes the answer shorter where the request gave no length', async (t) => {
  const gateway = await gatewayWith(t);
  const { key } = await keyWith(gateway, { tokens_per_minute: 4_000 });
  const { max_tokens: _, ...open } = CHAT;
  assert.equal((await send(gateway, key, '/chat/completions', open)).status, 200);
  const sent = gateway.upstream.requests('a').at(-1)!.json as { max_tokens?: number; max_completion_tokens?: number };
  const cap = sent.max_tokens ?? sent.max_completion_tokens ?? Number.NaN;
  assert.ok(cap >= 1_024 && cap < 4_000 - 256, String(cap));
});

test('the limit of a workspace is for all of its keys together; null takes it away in every process', async (t) => {
  const gateway = await gatewayWith(t);
  const other = await gatewayWith(t, { target: gateway.target });
  const set = await manage(gateway, 'PATCH', '/workspaces/default', { rate_limits: { requests_per_day: 3 } });
  assert.deepEqual((set['data'] as Body)['rate_limits'], { requests_per_day: 3 });
  const keys = [(await keyWith(gateway, {})).key, (await keyWith(gateway, {})).key];
  const statuses = await Promise.all(
    [gateway, other].flatMap((place) => keys.flatMap((key) => [send(place, key), send(place, key)])),
  );
  assert.equal(statuses.filter(({ status }) => status === 200).length, 3);
  assert.equal(statuses.filter(({ status }) => status === 429).length, 5);
  await manage(gateway, 'PATCH', '/workspaces/default', { rate_limits: null });
  assert.equal((await send(other, keys[0]!)).status, 200);
});

test('what the configuration says holds for keys that say nothing, and a key may say otherwise', async (t) => {
  const gateway = await gatewayWith(t, { yaml: { rate_limits: { key: { requests_per_day: 1 } } } });
  const { data, key } = await manage(gateway, 'POST', '/keys', { name: 'plain' });
  assert.equal((data as Body)['rate_limits'], null);
  assert.deepEqual(
    [(await send(gateway, key as string)).status, (await send(gateway, key as string)).status],
    [200, 429],
  );
  const hash = (data as Body)['hash'] as string;
  await manage(gateway, 'PATCH', `/keys/${hash}`, { rate_limits: { requests_per_day: 3 } });
  assert.deepEqual(
    [(await send(gateway, key as string)).status, (await send(gateway, key as string)).status],
    [200, 200],
  );
  assert.equal((await send(gateway, key as string)).status, 429);
  const bad = await fetch(`${gateway.api}/keys/${hash}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: '{"rate_limits":{"requests_per_minute":0}}',
  });
  assert.equal(bad.status, 400);
  assert.match(await bad.text(), /rate_limits/);
});

test('of requests at two processes of the operating system at once exactly as many pass as the limit says', async (t) => {
  const gateway = await startGatewayProcess(t, {
    yaml: { providers: [{ id: 'simulated', kind: 'simulated' }] },
    env: { GATEHOUSE_WORKERS: '2', GATEHOUSE_DISCOVERY: 'off' },
  });
  const place = { api: gateway.api };
  const { key } = await keyWith(place, { requests_per_day: 70 });
  const body = JSON.stringify({ model: 'simulated/echo', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] });
  const statuses = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' };
      const answer = await fetch(`${place.api}/chat/completions`, { method: 'POST', headers, body });
      await answer.arrayBuffer();
      return answer.status;
    }),
  );
  assert.equal(new Set(gateway.lines('listening').map(({ pid }) => pid)).size, 2);
  assert.deepEqual(
    [200, 429].map((code) => statuses.filter((status) => status === code).length),
    [70, 130],
  );
});
