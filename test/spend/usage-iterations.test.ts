/** Responses that took further calls upstream: the bill includes all of them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { readRows } from '../../src/testing/database/rows.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { messagesEnd, messagesStart, messagesText, streamOf, wholeOf } from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const OPUS = { prompt: '0.000005', completion: '0.000025' };
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      // 0.000003 and 0.000015 USD a token.
      sonnet: { kind: 'messages', model: { upstream_id: 'claude-sonnet-4-6', context_length: 1_000_000 } },
      opus: { kind: 'messages', model: { upstream_id: 'claude-opus-4-8', pricing: OPUS } },
    },
  },
);

const call = (type: string, input: number, output: number, more: Json = {}) => ({
  type,
  input_tokens: input,
  output_tokens: output,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
  ...more,
});

interface Case {
  name: string;
  usage: Json;
  /** Of the whole bill, reckoned by hand. */
  usd: number;
  input: number;
  output: number;
  estimated?: true;
}

const CASES: readonly Case[] = [
  {
    name: 'compaction',
    usage: {
      input_tokens: 682,
      output_tokens: 1320,
      iterations: [call('compaction', 60_385, 592), call('message', 682, 1320)],
    },
    usd: 61_067 * 0.000003 + 1_912 * 0.000015,
    input: 61_067,
    output: 1_912,
  },
  {
    name: 'advisor',
    usage: {
      input_tokens: 2_411,
      output_tokens: 145,
      iterations: [
        call('message', 1_128, 135),
        call('advisor_message', 2_543, 18, { model: 'claude-opus-4-8-20260115' }),
        call('message', 1_283, 10),
      ],
    },
    usd: 2_411 * 0.000003 + 145 * 0.000015 + 2_543 * 0.000005 + 18 * 0.000025,
    input: 4_954,
    output: 163,
  },
  {
    name: 'an advisor that nobody here has a price of',
    usage: {
      input_tokens: 10,
      output_tokens: 5,
      iterations: [call('message', 10, 5), call('advisor_message', 100, 20, { model: 'claude-unheard-of' })],
    },
    usd: 110 * 0.000003 + 25 * 0.000015,
    input: 110,
    output: 25,
    estimated: true,
  },
  {
    name: 'fallback',
    usage: {
      input_tokens: 412,
      output_tokens: 264,
      iterations: [
        call('message', 408, 0, { model: 'claude-sonnet-4-6' }),
        call('fallback_message', 412, 264, { model: 'claude-opus-4-8' }),
      ],
    },
    usd: 412 * 0.000005 + 264 * 0.000025,
    input: 412,
    output: 264,
  },
];

function script({ usage }: Case, stream: boolean): void {
  const { input_tokens } = usage.iterations[0];
  gateway.upstream.script(
    'sonnet',
    stream
      ? streamOf([
          messagesStart({ input_tokens, output_tokens: 1 }),
          ...messagesText(0, 'done'),
          ...messagesEnd('end_turn', usage),
        ])
      : wholeOf({
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'claude-sonnet-4-6',
          content: [{ type: 'text', text: 'done' }],
          stop_reason: 'end_turn',
          stop_sequence: null,
          usage,
        }),
  );
}

const ROUTES: Record<string, { body: Json; counts(usage: Json): [number, number] }> = {
  '/messages': {
    body: { max_tokens: 2_000, messages: [{ role: 'user', content: 'hi' }] },
    counts: (usage) => [usage.input_tokens, usage.output_tokens],
  },
  '/chat/completions': {
    body: { max_tokens: 2_000, messages: [{ role: 'user', content: 'hi' }] },
    counts: (usage) => [usage.prompt_tokens, usage.completion_tokens],
  },
  '/responses': {
    body: { max_output_tokens: 2_000, input: 'hi' },
    counts: (usage) => [usage.input_tokens, usage.output_tokens],
  },
};

/** The last record of usage in an answer. */
function usageOf(text: string): Json {
  const values = text.startsWith('{') ? [text] : [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => json!);
  const parsed = values.map((json) => JSON.parse(json));
  return parsed
    .map((value) => value.response?.usage ?? value.usage)
    .filter(Boolean)
    .at(-1);
}

for (const each of CASES) {
  for (const [route, { body, counts }] of Object.entries(ROUTES)) {
    for (const stream of [false, true]) {
      test(`${each.name}: ${route}${stream ? ', streamed' : ''} is billed with every call in the answer`, async () => {
        script(each, stream);
        const reply = await gateway.post(route, { model: 'test/sonnet', stream, ...body });
        const usage = usageOf(await reply.text());
        assert.equal(reply.status, 200);
        const own = [each.usage.input_tokens, each.usage.output_tokens];
        assert.deepEqual(counts(usage), route === '/messages' ? own : [each.input, each.output]);
        const usd = Math.round(each.usd * 1e9) / 1e9;
        assert.equal(usage.cost, usd);
        const id = reply.headers.get('x-generation-id')!;
        const { data } = (await (await gateway.get(`/generation?id=${id}`)).json()) as Json;
        assert.deepEqual([data.total_cost, data.tokens_prompt, data.tokens_completion], [usd, each.input, each.output]);
        // Reads the counters, so the row is in the database.
        await gateway.get('/key');
        const row = (await readRows(gateway.target)).find((one) => one.id === id);
        assert.equal(row!.estimated, each.estimated ?? false);
      });
    }
  }
}

async function keyWith(limit: number): Promise<string> {
  const reply = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'limited', limit }),
  });
  return ((await reply.json()) as Json).key;
}

const LONG = 'word '.repeat(40_000);

test('the reservation covers the summary of a conversation that is long enough to be compacted', async () => {
  const ask = async (limit: number, content: string, more: Json = {}) => {
    script(CASES[0]!, false);
    const body = { model: 'test/sonnet', max_tokens: 1_000, messages: [{ role: 'user', content }], ...more };
    return (await gateway.post('/messages', body, { authorization: `Bearer ${await keyWith(limit)}` })).status;
  };
  const compacts = { context_management: { edits: [{ type: 'compact_20260112' }] } };
  // 200,000 bytes at 0.00000375 USD, and 1,000 tokens of output.
  assert.equal(await ask(0.8, LONG), 200);
  assert.equal(await ask(0.8, LONG, compacts), 402);
  // Twice the prompt, and a summary of 32,768 tokens at most.
  assert.equal(await ask(2.2, LONG, compacts), 200);
  assert.equal(await ask(0.1, 'short', compacts), 200);
});

test('the reservation covers each call of an advisor at its own price', async () => {
  const ask = async (limit: number, uses: number) => {
    script(CASES[1]!, false);
    const advisor = {
      type: 'advisor_20260301',
      name: 'advisor',
      model: 'claude-opus-4-8',
      max_uses: uses,
      max_tokens: 1_024,
    };
    const body = {
      model: 'test/sonnet',
      max_tokens: 100,
      tools: [advisor],
      messages: [{ role: 'user', content: 'hi' }],
    };
    return (await gateway.post('/messages', body, { authorization: `Bearer ${await keyWith(limit)}` })).status;
  };
  assert.equal(await ask(0.06, 1), 200);
  assert.equal(await ask(0.06, 3), 402);
  assert.equal(await ask(0.25, 3), 200);
});
