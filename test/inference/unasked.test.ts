/** Why each endpoint of a model was or was not tried, as GET /generation shows it. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatFailure, chatWhole } from '../../src/testing/upstream/chat-upstream.ts';

const BODY = { model: 'test/m', messages: [{ role: 'user', content: 'hi' }], max_tokens: 16 };

interface Told {
  asked: string[];
  unasked: Record<string, string[]>;
}

/** Four endpoints of one model, of which `dear` costs the most and `small` has a short context. */
async function scene(t: TestContext) {
  const model = { id: 'test/m' };
  const gateway = await startGateway(t, {
    providers: {
      first: { model },
      second: { model },
      dear: { model: { ...model, pricing: { prompt: '0.9', completion: '0.9' } } },
      small: { model: { ...model, context_length: 20 } },
    },
  });
  const told = async (body: object): Promise<Told> => {
    const reply = await gateway.post('/chat/completions', { ...BODY, ...body });
    await reply.text();
    const id = reply.headers.get('x-generation-id');
    const shown = await gateway.get(`/generation?id=${id}`, MANAGEMENT_KEY);
    const { data } = (await shown.json()) as { data: Record<string, { provider_name: string; reasons: string[] }[]> };
    const named = (name: string) => name.replace('Provider ', '');
    return {
      asked: data['provider_responses']!.map((one) => named(one.provider_name)),
      unasked: Object.fromEntries(data['unasked_endpoints']!.map((one) => [named(one.provider_name), one.reasons])),
    };
  };
  return { gateway, told };
}

test('a generation shows why each endpoint was or was not tried', async (t) => {
  const { gateway, told } = await scene(t);
  for (const name of ['first', 'second', 'dear', 'small']) {
    gateway.upstream.script(name, { ...chatWhole('yes'), repeat: true });
  }
  const answered = ['answered_before'];
  assert.deepEqual(await told({}), {
    asked: ['first'],
    unasked: { second: answered, dear: answered, small: answered },
  });
  const long = [{ role: 'user', content: 'word '.repeat(400) }];
  assert.deepEqual(
    await told({ messages: long, provider: { ignore: ['first'], max_price: { prompt: 100 }, order: ['second'] } }),
    {
      asked: ['second'],
      unasked: { first: ['allowed_providers'], dear: ['max_price'], small: ['context_length'] },
    },
  );
  assert.deepEqual(await told({ provider: { only: ['first', 'second'], allow_fallbacks: false } }), {
    asked: ['first'],
    unasked: { dear: ['allowed_providers'], small: ['allowed_providers'], second: ['allow_fallbacks'] },
  });
});

test('a generation shows failures: cooldowns, and what ended the request', async (t) => {
  const { gateway, told } = await scene(t);
  const only = { only: ['first', 'second'] };
  const excluded = { dear: ['allowed_providers'], small: ['allowed_providers'] };
  gateway.upstream.script('first', chatFailure(503));
  gateway.upstream.script('second', { ...chatWhole('yes'), repeat: true });
  assert.deepEqual(await told({ provider: only }), { asked: ['first', 'second'], unasked: excluded });
  assert.deepEqual(await told({ provider: only }), {
    asked: ['second'],
    unasked: { ...excluded, first: ['cooldown', 'answered_before'] },
  });
  gateway.upstream.script('small', chatFailure(400));
  assert.deepEqual(await told({ provider: { only: ['small', 'dear'], order: ['small'] } }), {
    asked: ['small'],
    unasked: { first: ['allowed_providers'], second: ['allowed_providers'], dear: ['request_failed'] },
  });
});
