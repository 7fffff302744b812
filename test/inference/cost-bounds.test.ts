import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type GatewayOptions, MANAGEMENT_KEY, PRICING, startGateway } from '../../src/testing/gateway/gateway.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const hello = { model: 'test/m', messages: [{ role: 'user', content: 'hi' }] };

/** Ten prompt and `completion` completion tokens: 0.00003 USD and 0.000015 USD each. */
const answer = (completion: number): Answer => ({
  headers: { 'content-type': 'application/json' },
  chunks: [
    JSON.stringify({
      id: 'up',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'good' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: completion, total_tokens: 10 + completion },
    }),
  ],
});

async function limitedGateway(t: TestContext, limitUsd: number, options: GatewayOptions = {}) {
  const gateway = await startGateway(t, { providers: { m: {} }, ...options });
  const made = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'limited', limit: limitUsd }),
  });
  assert.equal(made.status, 201);
  const { key } = (await made.json()) as { key: string };
  const ask = (body: unknown) => gateway.post('/chat/completions', body, { authorization: `Bearer ${key}` });
  const usage = async () => {
    const reply = (await (await gateway.get('/key', key)).json()) as {
      data: { usage: number; limit_remaining: number };
    };
    return reply.data;
  };
  return { gateway, ask, usage, token: key };
}

test('a request whose worst case exceeds the key limit is 402 before anything is sent, with the reason', async (t) => {
  const { gateway, ask, usage } = await limitedGateway(t, 0.01);
  gateway.upstream.script('m', answer(2));
  // 1,000 completion tokens alone could cost 0.015 USD.
  const refused = await ask({ ...hello, max_tokens: 1000 });
  assert.equal(refused.status, 402);
  const { error } = (await refused.json()) as { error: { message: string; metadata: Record<string, unknown> } };
  assert.equal(error.metadata['error_type'], 'payment_required');
  assert.equal(error.metadata['left_usd'], 0.01);
  assert.ok((error.metadata['could_cost_usd'] as number) > 0.015);
  assert.equal(gateway.upstream.requests('m').length, 0);
  assert.equal((await ask({ ...hello, max_tokens: 100 })).status, 200);
  assert.deepEqual(await usage().then(({ usage: spent }) => spent), 10 * 0.000003 + 2 * 0.000015);
});

test('a request without its own maximum gets the output cap that the budget can pay', async (t) => {
  // The endpoint would allow 8,000 tokens: 0.12 USD.
  const { gateway, ask } = await limitedGateway(t, 0.05);
  gateway.upstream.script('m', answer(2));
  assert.equal((await ask(hello)).status, 200);
  const asked = gateway.upstream.requests('m')[0]!;
  const cap = (asked.json as { max_tokens: number }).max_tokens;
  assert.ok(cap >= 1024 && cap * 0.000015 < 0.05, `max_tokens ${cap}`);
});

test('fewer than 1,024 tokens are not worth a call: 402', async (t) => {
  const { gateway, ask } = await limitedGateway(t, 0.015);
  gateway.upstream.script('m', answer(2));
  assert.equal((await ask(hello)).status, 402);
});

test('a limit of 1.00 pays for exactly a hundred requests whose highest bill is 0.01', async (t) => {
  const { gateway, ask, usage } = await limitedGateway(t, 1, {
    providers: { m: { model: { pricing: { prompt: '0', completion: '0.001' } } } },
  });
  gateway.upstream.script('m', { ...answer(10), repeat: true });
  const statuses: number[] = [];
  for (let n = 0; n < 101; n++) statuses.push((await ask({ ...hello, max_tokens: 10 })).status);
  assert.deepEqual(statuses, [...Array<number>(100).fill(200), 402]);
  assert.equal(gateway.upstream.requests('m').length, 100);
  assert.deepEqual(await usage().then(({ usage: spent, limit_remaining: left }) => [spent, left]), [1, 0]);
});

test('small requests can use a budget of 0.006 USD', async (t) => {
  const { gateway, ask } = await limitedGateway(t, 0.006, {
    providers: { m: { model: { pricing: { prompt: '0.00001', completion: '0.00003' } } } },
  });
  gateway.upstream.script('m', { ...answer(2), repeat: true });
  assert.equal((await ask({ ...hello, max_tokens: 16 })).status, 200);
  // Tool instructions that a provider adds are reserved as well.
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
  assert.equal((await ask({ ...hello, max_tokens: 16, tools })).status, 402);
});

test('a model without a price is refused to a key with a limit and served to one without', async (t) => {
  const { gateway, ask } = await limitedGateway(t, 5, { providers: { m: { model: { pricing: undefined } } } });
  gateway.upstream.script('m', answer(2));
  const refused = await ask(hello);
  assert.equal(refused.status, 403);
  assert.match(((await refused.json()) as { error: { message: string } }).error.message, /test\/m has no price/);
  const served = await gateway.post('/chat/completions', hello);
  assert.equal(served.status, 200);
  assert.ok(!('cost' in ((await served.json()) as { usage: object }).usage));
});

test('an image counts as an image, however few bytes it has', async (t) => {
  // 8,192 tokens of 0.000003 USD: 0.0246 USD.
  const { gateway, ask } = await limitedGateway(t, 0.02);
  gateway.upstream.script('m', answer(2));
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
  const body = { ...hello, max_tokens: 16, messages: [{ role: 'user', content: [picture] }] };
  assert.equal((await ask(body)).status, 402);
  assert.equal((await ask({ ...hello, max_tokens: 16 })).status, 200);
});

test('a document may fill the whole context', async (t) => {
  // 200,000 tokens: 0.60 USD.
  const { gateway, ask } = await limitedGateway(t, 0.5);
  gateway.upstream.script('m', answer(2));
  const file = { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0xLjQK' } };
  assert.equal((await ask({ ...hello, max_tokens: 16, messages: [{ role: 'user', content: [file] }] })).status, 402);
});

test('a prompt that is stored at the vendor may fill the whole context too', async (t) => {
  const { gateway, token } = await limitedGateway(t, 0.5, { providers: { m: { kind: 'openai' } } });
  const body = { model: 'test/m', input: 'hi', max_output_tokens: 16, prompt: { id: 'pmpt_1' } };
  const reply = await gateway.post('/responses', body, { authorization: `Bearer ${token}` });
  assert.equal(reply.status, 402);
  assert.equal(gateway.upstream.requests('m').length, 0);
});

test('the account balance limits like a key limit', async (t) => {
  const gateway = await startGateway(t, {
    providers: { m: {} },
    yaml: { account: { balance_usd: 0.01 } },
  });
  gateway.upstream.script('m', answer(2));
  const refused = await gateway.post('/chat/completions', { ...hello, max_tokens: 1000 });
  assert.equal(refused.status, 402);
  assert.match(((await refused.json()) as { error: { message: string } }).error.message, /account balance/);
  assert.equal((await gateway.post('/chat/completions', { ...hello, max_tokens: 10 })).status, 200);
});

test('an exhausted key may use a free model, but its paid fallback is not called (402)', async (t) => {
  const free = { prompt: '0', completion: '0' };
  const { gateway, ask } = await limitedGateway(t, 0.01, {
    providers: { free: { model: { pricing: free } }, paid: { model: { pricing: PRICING } } },
  });
  gateway.upstream.script('free', [
    { status: 503, chunks: ['{}'] },
    { ...answer(2), repeat: true },
  ]);
  gateway.upstream.script('paid', answer(2));
  const body = { ...hello, model: 'test/free', models: ['test/paid'], max_tokens: 1000 };
  assert.equal((await ask(body)).status, 402);
  assert.equal(gateway.upstream.requests('paid').length, 0);
  assert.equal((await ask(body)).status, 200);
});

test('the tools of an upstream have their searches and what they read reserved, as far as max_uses allows', async (t) => {
  // A search costs 0.01 USD, and its pages 16,384 tokens at 3.75 USD a million, the price of a cache write.
  const pricing = { ...PRICING, web_search: '0.01' };
  const { gateway, usage, token } = await limitedGateway(t, 0.2, {
    providers: { m: { kind: 'messages', model: { pricing } } },
  });
  const reply = {
    ...{ id: 'msg_up', type: 'message', role: 'assistant', model: 'm', stop_sequence: null, stop_reason: 'end_turn' },
    content: [{ type: 'text', text: 'found' }],
    usage: { input_tokens: 30_000, output_tokens: 2, server_tool_use: { web_search_requests: 2 } },
  };
  gateway.upstream.script('m', { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(reply)] });
  const search = async (more: object) => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search', ...more }];
    const body = { ...hello, max_tokens: 16, tools };
    return (await gateway.post('/messages', body, { authorization: `Bearer ${token}` })).status;
  };
  assert.equal(await search({}), 402);
  assert.equal(await search({ max_uses: 3 }), 402);
  assert.equal(gateway.upstream.requests('m').length, 0);
  assert.equal(await search({ max_uses: 2 }), 200);
  // 30,000 x 3 + 2 x 15 millionths, and two searches.
  assert.equal((await usage()).usage, 0.11003);
  assert.equal(await search({ max_uses: 2 }), 402);
});
