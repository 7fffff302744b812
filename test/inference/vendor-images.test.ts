/** Images that a tool of the upstream makes: reserved, charged once, and told in the row. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { MANAGEMENT_KEY, PRICING, startGateway } from '../../src/testing/gateway/gateway.ts';

const TOKENS = {
  input_tokens: 300,
  input_tokens_details: { text_tokens: 100, image_tokens: 200 },
  output_tokens: 1_000,
  total_tokens: 1_300,
};
/** What the text costs: 10 tokens at 3 and 2 at 15 USD a million. */
const TEXT_USD = 0.00006;
const body = { model: 'test/m', input: 'A cat', max_output_tokens: 16, tools: [{ type: 'image_generation' }] };

const made = (id: string) => ({ type: 'image_generation_call', id, status: 'completed', result: 'aW1hZ2U=' });

function reply(more: object, output: object[] = [made('ig_1')]) {
  return {
    ...{ id: 'resp_up', object: 'response', created_at: 1, status: 'completed', model: 'gpt-5.2', error: null },
    output: [...output, { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [] }],
    usage: { input_tokens: 10, output_tokens: 2, total_tokens: 12 },
    tools: body.tools,
    ...more,
  };
}

async function imageGateway(t: TestContext, prices: object, limitUsd: number, models: object[] = []) {
  const own = { id: 'test/m', upstream_id: 'gpt-5.2', context_length: 100_000, pricing: { ...PRICING, ...prices } };
  const gateway = await startGateway(t, { providers: { m: { kind: 'openai', models: [own, ...models] } } });
  const made = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'limited', limit: limitUsd }),
  });
  const { key } = (await made.json()) as { key: string };
  const script = (response: object, stream = false) => {
    const event = { type: 'response.completed', sequence_number: 0, response };
    const chunks = stream ? [`data: ${JSON.stringify(event)}\n\n`] : [JSON.stringify(response)];
    gateway.upstream.script('m', {
      headers: { 'content-type': stream ? 'text/event-stream' : 'application/json' },
      chunks,
    });
  };
  const ask = async (more: object = {}) => {
    const response = await gateway.post('/responses', { ...body, ...more }, { authorization: `Bearer ${key}` });
    return { status: response.status, text: await response.text(), id: response.headers.get('x-generation-id')! };
  };
  const row = async (id: string) =>
    ((await (await gateway.get(`/generation?id=${id}`, key)).json()) as { data: Record<string, unknown> }).data;
  return { gateway, script, ask, row };
}

test('image tokens of the tool cost what the model has for them, once, and usage is the upstream’s own', async (t) => {
  const { script, ask, row } = await imageGateway(t, { image_token: '0.00001', image_output: '0.00004' }, 10);
  for (const stream of [false, true]) {
    script(reply({ tool_usage: { image_gen: TOKENS } }), stream);
    const { status, text, id } = await ask({ stream });
    assert.equal(status, 200, text);
    const answer = stream ? JSON.parse(/data: (.*"response\.completed".*)/.exec(text)![1]!).response : JSON.parse(text);
    // 100 tokens of text at 3, 200 of images at 10 and 1,000 written ones at 40 USD a million.
    const expected = TEXT_USD + 0.0003 + 0.002 + 0.04;
    assert.equal(answer.usage.input_tokens, 10);
    assert.equal(answer.usage.total_tokens, 12);
    assert.deepEqual(answer.tool_usage, { image_gen: TOKENS });
    assert.equal(answer.usage.cost, expected);
    assert.equal((await row(id))['total_cost'], expected);
  }
});

test('the model that the tool names has its own price', async (t) => {
  const painter = {
    ...{ id: 'test/painter', upstream_id: 'painter-1', output_modalities: ['image'] },
    pricing: { prompt: '0.000005', completion: '0.00003', image_token: '0.000008', image_output: '0.00003' },
  };
  const { script, ask, row } = await imageGateway(t, {}, 10, [painter]);
  const tools = [{ type: 'image_generation', model: 'painter-1' }];
  script(reply({ tools, tool_usage: { image_gen: TOKENS } }));
  const { id } = await ask({ tools });
  assert.equal((await row(id))['total_cost'], TEXT_USD + 0.0005 + 0.0016 + 0.03);
});

test('images that are only shown are charged by piece', async (t) => {
  const { script, ask, row } = await imageGateway(t, { output_images: [{ price: '0.07' }] }, 10);
  script(reply({}, [made('ig_1'), made('ig_2'), { ...made('ig_3'), status: 'failed', result: null }]));
  const { id } = await ask();
  assert.equal((await row(id))['total_cost'], 0.14006);
});

test('ten images are reserved, or as many as max_tool_calls allows', async (t) => {
  // An image is bounded by 8,192 tokens read at 10 and written at 40 USD a million: 0.41 USD.
  const { gateway, script, ask } = await imageGateway(t, { image_token: '0.00001', image_output: '0.00004' }, 1);
  script(reply({ tool_usage: { image_gen: TOKENS } }));
  assert.equal((await ask()).status, 402);
  assert.equal((await ask({ max_tool_calls: 3 })).status, 402);
  assert.equal(gateway.upstream.requests('m').length, 0);
  assert.equal((await ask({ max_tool_calls: 2 })).status, 200);
});
