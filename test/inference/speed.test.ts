/** `speed: "fast"` of the messages format is a service tier: preferred, charged, and not sent without a price. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { PRICING, startGateway } from '../../src/testing/gateway/gateway.ts';

const FAST = { prompt: '0.00001', completion: '0.00002' };
const [DEFAULT_NANO, FAST_NANO] = [10 * 3_000 + 2 * 15_000, 10 * 10_000 + 2 * 20_000];

const json = (value: unknown) => ({ headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(value)] });
const ANSWERS = {
  chat: json({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
  }),
  messages: json({
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'x' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 2 },
  }),
};

async function asking(t: TestContext, kind: keyof typeof ANSWERS, tiers: object) {
  const gateway = await startGateway(t, { providers: { up: { kind, model: { pricing: PRICING, ...tiers } } } });
  gateway.upstream.script('up', ANSWERS[kind]);
  return async (wish: object) => {
    const body = { model: 'test/up', max_tokens: 50, messages: [{ role: 'user', content: 'Hello' }], ...wish };
    const { usage } = (await (await gateway.post('/messages', body)).json()) as { usage: { cost: number } };
    const { speed, service_tier } = gateway.upstream.requests().at(-1)!.json as Record<string, unknown>;
    return { speed, service_tier, nano: Math.round(usage.cost * 1e9) };
  };
}

test('where a fast tier has its price it is asked for in the format of the upstream and charged at it', async (t) => {
  const tiers = { service_tiers: { priority: { pricing: FAST } } };
  const chat = await asking(t, 'chat', tiers);
  assert.deepEqual(await chat({ speed: 'fast' }), { speed: undefined, service_tier: 'priority', nano: FAST_NANO });
  assert.deepEqual(await chat({ speed: 'standard' }), {
    speed: undefined,
    service_tier: undefined,
    nano: DEFAULT_NANO,
  });
  const messages = await asking(t, 'messages', tiers);
  assert.deepEqual(await messages({ speed: 'fast' }), { speed: 'fast', service_tier: undefined, nano: FAST_NANO });
  assert.deepEqual(await messages({ speed: 'fast', service_tier: 'flex' }), {
    speed: undefined,
    service_tier: undefined,
    nano: DEFAULT_NANO,
  });
});

test('without a price the fast tier is not requested, as its charge would be unknown', async (t) => {
  for (const kind of ['chat', 'messages'] as const) {
    const ask = await asking(t, kind, {});
    const expected = { speed: undefined, service_tier: undefined, nano: DEFAULT_NANO };
    assert.deepEqual(await ask({ speed: 'fast' }), expected, kind);
    assert.deepEqual(await ask({ speed: 'fast', service_tier: 'auto' }), expected, kind);
  }
});
