/** Wrong counts that users of other gateways were billed by, each asked of the ways through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ask, FORMAT_PAIRS, FORMATS, readStreamed, readWhole, rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import {
  answerOf,
  CHAT_DONE,
  chatChunk,
  chatData,
  chatFinish,
  chatReply,
  chatUsageChunk,
  type Format,
  messagesData,
  messagesEnd,
  messagesReply,
  messagesStart,
  messagesText,
  streamOf,
  wholeOf,
} from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: {},
      messages: { kind: 'messages' },
      mistral: { kind: 'mistral' },
      xai: { kind: 'xai' },
      first: { model: { id: 'pair/m' } },
      second: { model: { id: 'pair/m' } },
    },
  },
);

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

/** USD a token, as the harness prices them. */
const PRICE = { prompt: 3e-6, completion: 15e-6, cacheRead: 0.3e-6, cacheWrite: 3.75e-6 };

interface Counts {
  input: number;
  cacheRead?: number;
  cacheWrite?: number;
  output: number;
  reasoning?: number;
}

function costOf({ input, cacheRead = 0, cacheWrite = 0, output }: Counts): number {
  return input * PRICE.prompt + cacheRead * PRICE.cacheRead + cacheWrite * PRICE.cacheWrite + output * PRICE.completion;
}

function assertClose(actual: unknown, expected: number, what: string): void {
  assert.ok(Math.abs(Number(actual) - expected) < 1e-9, `${what}: ${actual} is not ${expected}`);
}

/** The client's record, the row and the cost of an answer with these counts. */
async function assertCounts(
  served: Format,
  provider: string,
  answer: Answer,
  stream: boolean,
  counts: Counts,
): Promise<string> {
  const { input, cacheRead = 0, cacheWrite = 0, output, reasoning = 0 } = counts;
  gateway.upstream.script(provider, answer);
  const { status, text, headers } = await ask(gateway, served, `test/${provider}`, { stream });
  assert.equal(status, 200, text);
  const { usage }: { usage: Json } = (stream ? readStreamed : readWhole)(served, text);
  if (served === 'chat') {
    const prompt = input + cacheRead + cacheWrite;
    assert.deepEqual(
      [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens],
      [prompt, output, prompt + output],
    );
    assert.equal(usage.prompt_tokens_details?.cached_tokens ?? 0, cacheRead);
    assert.equal(usage.prompt_tokens_details?.cache_write_tokens ?? 0, cacheWrite);
    assert.equal(usage.completion_tokens_details?.reasoning_tokens ?? 0, reasoning);
  } else {
    assert.deepEqual(
      [
        usage.input_tokens,
        usage.cache_read_input_tokens ?? 0,
        usage.cache_creation_input_tokens ?? 0,
        usage.output_tokens,
      ],
      [input, cacheRead, cacheWrite, output],
    );
  }
  const cost = costOf(counts);
  assertClose(usage.cost, cost, 'usage.cost');
  const row = await rowOf(gateway, headers.get('x-generation-id')!);
  assert.deepEqual(
    [row['tokens_prompt'], row['tokens_completion'], row['native_tokens_cached'], row['native_tokens_reasoning']],
    [input + cacheRead + cacheWrite, output, cacheRead, reasoning],
  );
  assertClose(row['total_cost'], cost, 'total_cost');
  return text;
}

for (const { served, spoken, name } of FORMAT_PAIRS) {
  test(`52, 54 | ${name} | each token has one price class, whole and streamed`, async () => {
    const counts: Counts[] = [
      { input: 4, cacheWrite: 10_000, output: 500 },
      { input: 18, cacheRead: 8, output: 1000, reasoning: 700 },
      { input: 0, cacheRead: 10_000, output: 1 },
      { input: 7, cacheRead: 3, cacheWrite: 2, output: 9, reasoning: 9 },
    ];
    for (const stream of [false, true]) {
      for (const usage of counts)
        await assertCounts(served, spoken, answerOf(spoken, stream, { text: 'ok', usage }), stream, usage);
    }
  });
}

test('52 | one-hour cache writes are reported separately and counted once', async () => {
  const usage = {
    input_tokens: 4,
    cache_creation_input_tokens: 100,
    cache_read_input_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 60, ephemeral_1h_input_tokens: 40 },
    output_tokens: 5,
  };
  for (const served of FORMATS) {
    for (const stream of [false, true]) {
      const answer = stream
        ? streamOf([
            messagesStart({ ...usage, output_tokens: 1 }),
            ...messagesText(0, 'x'),
            ...messagesEnd('end_turn', { output_tokens: 5 }),
          ])
        : wholeOf({ ...messagesReply({ text: 'x' }), usage });
      await assertCounts(served, 'messages', answer, stream, { input: 4, cacheWrite: 100, output: 5 });
    }
  }
});

for (const spoken of FORMATS) {
  test(`5 | ${spoken} upstream | requested usage is on one last chunk without choices, and on no other`, async () => {
    gateway.upstream.script(spoken, answerOf(spoken, true, { text: 'Hello', usage: { input: 13, output: 20 } }));
    const { text } = await ask(gateway, 'chat', `test/${spoken}`, {
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!));
    const told = chunks.filter((chunk: Json) => chunk.usage);
    assert.equal(told.length, 1);
    assert.equal(told[0], chunks.at(-1));
    assert.deepEqual(told[0].choices, []);
    const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = told[0].usage;
    assert.deepEqual([prompt, completion, total], [13, 20, 33]);
    assert.ok(chunks.at(-2).choices[0].finish_reason === 'stop');
  });

  // The reports want no usage at all here; ours is on the finish chunk when the option is absent, and adds no chunk.
  test(`6, 7 | ${spoken} upstream | usage is always requested and recorded, and clients get no usage chunk that they did not request`, async () => {
    const counts = { input: 20, output: 900, reasoning: 890 };
    for (const options of [undefined, null, {}, { include_usage: false }]) {
      gateway.upstream.script(spoken, answerOf(spoken, true, { text: '4', usage: counts }));
      const { text, headers } = await ask(gateway, 'chat', `test/${spoken}`, {
        stream: true,
        ...(options !== undefined && { stream_options: options }),
      });
      const asked = gateway.upstream.requests(spoken).at(-1)!.json as Json;
      if (spoken === 'chat') assert.equal(asked.stream_options.include_usage, true);
      else assert.ok(!('stream_options' in asked));
      const chunks = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!));
      assert.ok(
        chunks.every((chunk: Json) => chunk.choices.length === 1),
        text,
      );
      assert.equal(chunks.filter((chunk: Json) => chunk.usage).length, options?.include_usage === false ? 0 : 1);
      const row = await rowOf(gateway, headers.get('x-generation-id')!);
      assert.deepEqual([row['tokens_prompt'], row['tokens_completion']], [20, 900]);
      assertClose(row['total_cost'], costOf(counts), 'total_cost');
    }
  });
}

test('7 | usage is requested from a chat upstream for messages clients too', async () => {
  await assertCounts(
    'messages',
    'chat',
    answerOf('chat', true, { text: '4', usage: { input: 20, output: 900 } }),
    true,
    { input: 20, output: 900 },
  );
  assert.deepEqual((gateway.upstream.requests('chat').at(-1)!.json as Json).stream_options, { include_usage: true });
});

test('7 | stream_options is not sent to an upstream that refuses it', async () => {
  for (const served of FORMATS) {
    gateway.upstream.script('mistral', answerOf('chat', true, { text: '4' }));
    const { status } = await ask(gateway, served, 'test/mistral', {
      stream: true,
      ...(served === 'chat' && { stream_options: { include_usage: true } }),
    });
    assert.equal(status, 200);
    assert.ok(!('stream_options' in (gateway.upstream.requests('mistral').at(-1)!.json as Json)));
  }
});

const COUNT = { prompt_tokens: 26, completion_tokens: 9, total_tokens: 35 };
const text = chatChunk({ role: 'assistant', content: 'Hello' });

/** Where and how services report their counts; each means 26 read and 9 written, or what is given. */
const RECORDS: [string, Json[] | string[], Counts][] = [
  [
    'on the finish chunk',
    [text, chatData({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: COUNT }), CHAT_DONE],
    { input: 26, output: 9 },
  ],
  [
    'on a last chunk',
    [text, chatFinish(), chatUsageChunk({ input: 26, output: 9 }), CHAT_DONE],
    { input: 26, output: 9 },
  ],
  [
    'growing on every chunk',
    [
      chatData({
        choices: [{ index: 0, delta: { role: 'assistant', content: 'Hel' } }],
        usage: { prompt_tokens: 26, completion_tokens: 1, total_tokens: 27 },
      }),
      chatData({
        choices: [{ index: 0, delta: { content: 'lo' } }],
        usage: { prompt_tokens: 26, completion_tokens: 5, total_tokens: 31 },
      }),
      chatFinish(),
      chatData({ choices: [], usage: COUNT }),
      CHAT_DONE,
    ],
    { input: 26, output: 9 },
  ],
  [
    'twice at the end',
    [
      text,
      chatData({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: COUNT }),
      chatData({ choices: [], usage: COUNT }),
      CHAT_DONE,
    ],
    { input: 26, output: 9 },
  ],
  [
    'as null on all but the last',
    [
      text,
      chatChunk({ content: '' }, { usage: null }),
      chatFinish(),
      chatData({ choices: [], usage: COUNT }),
      CHAT_DONE,
    ],
    { input: 26, output: 9 },
  ],
  [
    'under the name of Groq',
    [
      text,
      chatData({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], x_groq: { id: 'r', usage: COUNT } }),
      CHAT_DONE,
    ],
    { input: 26, output: 9 },
  ],
  [
    'inside the choice, as Moonshot does',
    [
      text,
      chatData({ choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage: { ...COUNT, cached_tokens: 6 } }] }),
      CHAT_DONE,
    ],
    { input: 20, cacheRead: 6, output: 9 },
  ],
  [
    'with the cache as DeepSeek counts it',
    [
      text,
      chatFinish(),
      chatData({ choices: [], usage: { ...COUNT, prompt_cache_hit_tokens: 16, prompt_cache_miss_tokens: 10 } }),
      CHAT_DONE,
    ],
    { input: 10, cacheRead: 16, output: 9 },
  ],
  [
    'with the thinking as DeepSeek and OpenAI count it',
    [
      text,
      chatFinish(),
      chatData({ choices: [], usage: { ...COUNT, completion_tokens_details: { reasoning_tokens: 4 } } }),
      CHAT_DONE,
    ],
    { input: 26, output: 9, reasoning: 4 },
  ],
  [
    'without a total',
    [text, chatFinish(), chatData({ choices: [], usage: { prompt_tokens: 26, completion_tokens: 9 } }), CHAT_DONE],
    { input: 26, output: 9 },
  ],
  [
    'with null details',
    [
      text,
      chatFinish(),
      chatData({ choices: [], usage: { ...COUNT, prompt_tokens_details: null, completion_tokens_details: null } }),
      CHAT_DONE,
    ],
    { input: 26, output: 9 },
  ],
  ['in a chunk without choices', [text, chatFinish(), chatData({ usage: COUNT }), CHAT_DONE], { input: 26, output: 9 }],
];

for (const [where, events, counts] of RECORDS) {
  test(`6 | usage reported ${where} is recorded and shown once`, async () => {
    for (const served of FORMATS) await assertCounts(served, 'chat', streamOf(events), true, counts);
  });
}

test('54 | thinking counted in addition to the completion is added, so that the parts match the total', async () => {
  const usage = {
    prompt_tokens: 26,
    completion_tokens: 300,
    total_tokens: 1026,
    prompt_tokens_details: { cached_tokens: 8 },
    completion_tokens_details: { reasoning_tokens: 700 },
  };
  const counts = { input: 18, cacheRead: 8, output: 1000, reasoning: 700 };
  for (const served of FORMATS) {
    await assertCounts(served, 'xai', wholeOf({ ...chatReply({ text: 'x' }), usage }), false, counts);
    await assertCounts(
      served,
      'xai',
      streamOf([text, chatFinish(), chatData({ choices: [], usage }), CHAT_DONE]),
      true,
      counts,
    );
  }
});

const MESSAGES_RECORDS: [string, string[], Counts][] = [
  [
    'only at the start',
    [
      messagesStart({ input_tokens: 26, output_tokens: 9 }),
      ...messagesText(0, 'Hello'),
      ...messagesEnd('end_turn', {}),
    ],
    { input: 26, output: 9 },
  ],
  [
    'at the start, with zeros for the prompt at the end',
    [
      messagesStart({ input_tokens: 20, cache_read_input_tokens: 6, output_tokens: 1 }),
      ...messagesText(0, 'Hello'),
      ...messagesEnd('end_turn', { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 9 }),
    ],
    { input: 20, cacheRead: 6, output: 9 },
  ],
  [
    'only at the end',
    [
      messagesStart({ input_tokens: 0, output_tokens: 0 }),
      ...messagesText(0, 'Hello'),
      ...messagesEnd('end_turn', { input_tokens: 26, output_tokens: 9 }),
    ],
    { input: 26, output: 9 },
  ],
  [
    'with nulls at the end',
    [
      messagesStart({ input_tokens: 20, cache_read_input_tokens: 6, output_tokens: 1 }),
      ...messagesText(0, 'Hello'),
      ...messagesEnd('end_turn', { input_tokens: null, cache_read_input_tokens: null, output_tokens: 9 }),
    ],
    { input: 20, cacheRead: 6, output: 9 },
  ],
  [
    'more exactly at the end',
    [
      messagesStart({ input_tokens: 1, output_tokens: 1 }),
      ...messagesText(0, 'Hello'),
      ...messagesEnd('end_turn', {
        input_tokens: 20,
        cache_read_input_tokens: 6,
        cache_creation_input_tokens: 2,
        output_tokens: 9,
      }),
    ],
    { input: 20, cacheRead: 6, cacheWrite: 2, output: 9 },
  ],
];

for (const [where, events, counts] of MESSAGES_RECORDS) {
  test(`52 | usage of a messages stream reported ${where} is recorded and shown once`, async () => {
    for (const served of FORMATS) await assertCounts(served, 'messages', streamOf(events), true, counts);
  });
}

for (const { served, spoken, name } of FORMAT_PAIRS) {
  test(`6 | ${name} | a response without usage is estimated, never free`, async () => {
    for (const stream of [false, true]) {
      const answer = answerOf(spoken, stream, {
        text: 'A sentence of some length, so that there is something to count.',
      });
      const bare = (answer.chunks as string[])
        .filter((event) => !/"choices":\[\]/.test(event))
        .map((event) => event.replace(/,"usage":\{[^{}]*(\{[^{}]*\}[^{}]*)*\}/, ''));
      gateway.upstream.script(spoken, { ...answer, chunks: bare });
      const { status, text: told, headers } = await ask(gateway, served, `test/${spoken}`, { stream });
      assert.equal(status, 200, told);
      const row = await rowOf(gateway, headers.get('x-generation-id')!);
      assert.ok(Number(row['tokens_completion']) >= 8 && Number(row['tokens_prompt']) >= 1, JSON.stringify(row));
      assert.ok(Number(row['total_cost']) > 0);
    }
  });
}

const UNREAD: [string, 'chat' | 'messages', Answer, boolean][] = [
  ['as 0', 'chat', answerOf('chat', false, { text: 'ok', usage: { input: 0, output: 9 } }), false],
  ['as 0', 'chat', answerOf('chat', true, { text: 'ok', usage: { input: 0, output: 9 } }), true],
  ['as 0', 'messages', answerOf('messages', false, { text: 'ok', usage: { input: 0, output: 9 } }), false],
  [
    'not at all',
    'messages',
    streamOf([
      messagesData({ type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', content: [] } }),
      ...messagesText(0, 'Hello'),
      ...messagesEnd('end_turn', { output_tokens: 9 }),
    ]),
    true,
  ],
];

for (const [how, spoken, answer, stream] of UNREAD) {
  const name = `${spoken}, ${stream ? 'streamed' : 'whole'}`;
  test(`6 and its kind | ${name} | a prompt count ${how} is estimated, other counts stay as reported`, async () => {
    for (const served of FORMATS) {
      gateway.upstream.script(spoken, answer);
      const { status, text, headers } = await ask(gateway, served, `test/${spoken}`, { stream });
      assert.equal(status, 200, text);
      const row = await rowOf(gateway, headers.get('x-generation-id')!);
      const prompt = Number(row['tokens_prompt']);
      assert.ok(prompt > 0 && prompt < 100, JSON.stringify(row));
      assert.equal(row['tokens_completion'], 9);
      assertClose(Number(row['total_cost']), costOf({ input: prompt, output: 9 }), 'total_cost');
      assert.match(text, new RegExp(`"(input|prompt)_tokens":${prompt}\\b`));
    }
  });
}

for (const { served, spoken, name } of FORMAT_PAIRS) {
  test(`6 and its kind | ${name} | a zero completion count next to a prompt count is estimated`, async () => {
    for (const stream of [false, true]) {
      const said = 'A sentence of some length, so that there is something to count.';
      gateway.upstream.script(spoken, answerOf(spoken, stream, { text: said, usage: { input: 26, output: 0 } }));
      const { status, text, headers } = await ask(gateway, served, `test/${spoken}`, { stream });
      assert.equal(status, 200, text);
      const row = await rowOf(gateway, headers.get('x-generation-id')!);
      const written = Number(row['tokens_completion']);
      assert.equal(row['tokens_prompt'], 26);
      assert.ok(written >= 8 && written < 40, JSON.stringify(row));
      assertClose(Number(row['total_cost']), costOf({ input: 26, output: written }), 'total_cost');
      assert.match(text, new RegExp(`"(output|completion)_tokens":${written}\\b`));
    }
  });
}

test('56 | a failed attempt is free, and the serving one is billed at its own price', async () => {
  gateway.upstream.script(
    'first',
    wholeOf({ error: { message: 'Rate limit', code: 'rate_limit_exceeded' } }, { status: 429 }),
  );
  gateway.upstream.script('second', answerOf('chat', false, { text: 'ok', usage: { input: 100, output: 10 } }));
  const { json, headers } = await ask(gateway, 'chat', 'pair/m');
  assert.equal(json.usage.is_byok, false);
  assertClose(json.usage.cost, costOf({ input: 100, output: 10 }), 'usage.cost');
  const row = await rowOf(gateway, headers.get('x-generation-id')!);
  assert.equal(row['is_byok'], false);
  assertClose(row['total_cost'], costOf({ input: 100, output: 10 }), 'total_cost');
});
