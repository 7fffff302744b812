/** Budgets that a request fits by its tokens but not by its bytes, through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply, wholeOf } from '../../src/testing/upstream/answers.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    // A count is given up after four seconds, which a busy machine may take over a megabyte.
    pace: 0.1,
    providers: {
      gpt: { kind: 'chat', model: { upstream_id: 'gpt-4o', context_length: 1_000_000, max_completion_tokens: 4_000 } },
      other: { kind: 'chat', model: { context_length: 1_000_000, max_completion_tokens: 4_000 } },
    },
  },
);

/** 20,000 tokens of ten bytes each. */
const WORD = ' president';
const PROMPT = WORD.repeat(20_000);
/**
 * USD, at 3.75 a million tokens of the prompt (all of it may be written to a cache) and 15 a million of the answer; 128 tokens
 * are held for the template.
 */
const usd = (prompt: number, output: number) => (prompt + 128) * 0.00000375 + output * 0.000015;

async function keyWith(limit: number): Promise<string> {
  const reply = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'limited', limit }),
  });
  assert.equal(reply.status, 201);
  return ((await reply.json()) as { key: string }).key;
}

async function ask(provider: string, limit: number, more: Record<string, unknown> = { max_tokens: 100 }) {
  gateway.upstream.script(provider, wholeOf(chatReply({ text: 'ok', usage: { input: 20_010, output: 1 } })));
  const authorization = `Bearer ${await keyWith(limit)}`;
  const body = { model: `test/${provider}`, messages: [{ role: 'user', content: PROMPT }], ...more };
  const reply = await gateway.post('/chat/completions', body, { authorization });
  return { status: reply.status, text: await reply.text() };
}

test('a request whose bytes are ten times its tokens passes with a budget for the tokens, and not below', async () => {
  assert.equal((await ask('gpt', usd(20_050, 100))).status, 200);
  assert.equal((await ask('gpt', usd(19_900, 100))).status, 402);
});

test('what a budget leaves beyond the tokens of the prompt is the output that is asked for', async () => {
  const { status, text } = await ask('gpt', usd(20_050, 2_000), {});
  assert.equal(status, 200, text);
  const { max_tokens: cap } = gateway.upstream.requests('gpt').at(-1)!.json as { max_tokens: number };
  assert.ok(cap >= 2_000 && cap < 2_100, String(cap));
});

test('a model without a public tokenizer is bounded by bytes', async () => {
  assert.equal((await ask('other', usd(20_050, 100))).status, 402);
  assert.equal((await ask('other', usd(200_400, 100))).status, 200);
});

test('a megabyte of one letter is counted in time', async () => {
  const letters = [{ role: 'user', content: 'a'.repeat(1024 * 1024) }];
  assert.equal((await ask('gpt', usd(400_000, 100), { max_tokens: 100, messages: letters })).status, 200);
});

test('tokens of a conversation for a model with a public tokenizer are counted, not estimated', async () => {
  const count = async (more: object) => {
    const messages = [{ role: 'user', content: 'hello world' }];
    const reply = await gateway.post('/messages/count_tokens', { model: 'test/gpt', max_tokens: 5, messages, ...more });
    return (await reply.json()) as { input_tokens: number; estimated?: boolean };
  };
  assert.deepEqual(await count({}), { input_tokens: 2 + 4 + 3 });
  assert.deepEqual(await count({ system: 'be brief' }), { input_tokens: 2 + 2 + 8 + 3 });
  const tools = [{ name: 'f', input_schema: { type: 'object', properties: {} } }];
  assert.equal((await count({ tools })).estimated, true);
});
