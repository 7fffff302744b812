/** Faults in front of Gemini that users of other gateways met, each asked of a whole gateway, for the key and for the cloud. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { ask, FORMATS, readWhole, rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const lines: string[] = [];
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    log: createLog({ stream: { write: (line) => lines.push(line) }, level: 'debug' }),
    providers: {
      gemini: { kind: 'google', model: { upstream_id: 'gemini-2.5-flash' } },
      refused: { kind: 'google', base_url: 'http://127.0.0.1:9/v1beta' },
    },
  },
);

const USAGE = { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4 };

function answer(parts: unknown[], usageMetadata: Json = USAGE): Answer {
  return wholeOf({ candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }], usageMetadata });
}

async function sent(served: (typeof FORMATS)[number], body: object): Promise<Json> {
  gateway.upstream.script('gemini', answer([{ text: 'ok' }]));
  const { status, text } = await ask(gateway, served, 'test/gemini', { ...body });
  assert.equal(status, 200, text);
  return gateway.upstream.requests('gemini').at(-1)!.json;
}

test('40 | each tool choice has one meaning', async () => {
  const chatTool = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };
  const table: [unknown, Json][] = [
    ['auto', { mode: 'AUTO' }],
    ['none', { mode: 'NONE' }],
    ['required', { mode: 'ANY' }],
    [
      { type: 'function', function: { name: 'f' } },
      { mode: 'ANY', allowedFunctionNames: ['f'] },
    ],
  ];
  for (const [choice, config] of table) {
    const { toolConfig } = await sent('chat', { tools: [chatTool], tool_choice: choice });
    assert.deepEqual(toolConfig, { functionCallingConfig: config });
  }
  const native: [Json, Json][] = [
    [{ type: 'auto' }, { mode: 'AUTO' }],
    [{ type: 'none' }, { mode: 'NONE' }],
    [{ type: 'any' }, { mode: 'ANY' }],
    [
      { type: 'tool', name: 'f' },
      { mode: 'ANY', allowedFunctionNames: ['f'] },
    ],
  ];
  for (const [choice, config] of native) {
    const tools = [{ name: 'f', input_schema: { type: 'object', properties: {} } }];
    assert.deepEqual((await sent('messages', { tools, tool_choice: choice })).toolConfig, {
      functionCallingConfig: config,
    });
  }
});

test('50 | a document is recognized in every kind of part', async () => {
  const pdf = 'JVBERi0xLjQK';
  const url = `data:application/pdf;base64,${pdf}`;
  const ways: [(typeof FORMATS)[number], Json][] = [
    ['chat', { type: 'file', file: { filename: 'a.pdf', file_data: url } }],
    ['chat', { type: 'image_url', image_url: { url } }],
    ['messages', { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } }],
  ];
  for (const [served, part] of ways) {
    const content = [{ type: 'text', text: 'about?' }, part];
    const { contents } = await sent(served, { messages: [{ role: 'user', content }] });
    assert.deepEqual(contents[0].parts, [
      { text: 'about?' },
      { inlineData: { mimeType: 'application/pdf', data: pdf } },
    ]);
  }
});

test('54 | thoughts count as output, cached and tool prompts as input, each billed once', async () => {
  const usage = {
    promptTokenCount: 21,
    candidatesTokenCount: 300,
    thoughtsTokenCount: 700,
    cachedContentTokenCount: 8,
    toolUsePromptTokenCount: 5,
    totalTokenCount: 1026,
  };
  for (const served of FORMATS) {
    gateway.upstream.script('gemini', answer([{ text: '42' }], usage));
    const answered = await ask(gateway, served, 'test/gemini');
    const told = answered.json.usage;
    if (served === 'chat') {
      assert.deepEqual([told.prompt_tokens, told.completion_tokens, told.total_tokens], [26, 1000, 1026]);
      assert.equal(told.completion_tokens_details.reasoning_tokens, 700);
      assert.equal(told.prompt_tokens_details.cached_tokens, 8);
    } else {
      assert.deepEqual([told.input_tokens, told.cache_read_input_tokens, told.output_tokens], [18, 8, 1000]);
    }
    const row = await rowOf(gateway, answered.headers.get('x-generation-id')!);
    assert.equal(row['total_cost'], (18 * 3000 + 8 * 300 + 1000 * 15_000) / 1e9);
  }
});

test('54 | thoughts are not added if the total shows that the candidates include them', async () => {
  const usage = { promptTokenCount: 10, candidatesTokenCount: 50, thoughtsTokenCount: 20, totalTokenCount: 60 };
  gateway.upstream.script('gemini', answer([{ text: '42' }], usage));
  const { json } = await ask(gateway, 'chat', 'test/gemini');
  assert.deepEqual([json.usage.completion_tokens, json.usage.total_tokens], [50, 60]);
});

test('54 | missing candidate counts are derived from the total', async () => {
  const usage = { promptTokenCount: 10, thoughtsTokenCount: 20, totalTokenCount: 60 };
  gateway.upstream.script('gemini', answer([{ text: '42' }], usage));
  const { json } = await ask(gateway, 'chat', 'test/gemini');
  assert.deepEqual([json.usage.completion_tokens, json.usage.total_tokens], [50, 60]);
  assert.equal(json.usage.completion_tokens_details.reasoning_tokens, 20);
});

test('70 | the key is sent in a header and never reaches the client, whatever the service responds', async () => {
  const echo = (message: string) =>
    wholeOf({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }, { status: 400 });
  const echoes = [
    echo(
      `bad request: https://generativelanguage.googleapis.com/v1beta/models?key=${encodeURIComponent(UPSTREAM_KEY)}`,
    ),
    echo(`API key not valid: ${UPSTREAM_KEY}`),
  ];
  for (const served of FORMATS) {
    for (const echoed of echoes) {
      gateway.upstream.script('gemini', echoed);
      const { text, headers } = await ask(gateway, served, 'test/gemini');
      assertNoKey(text + JSON.stringify([...headers]));
      gateway.clock.jump(11 * 60_000);
    }
    const down = await ask(gateway, served, 'test/refused');
    assert.equal(down.status, 502);
    assertNoKey(down.text);
  }
  const asked = gateway.upstream.requests('gemini').at(-1)!;
  assert.equal(asked.headers['x-goog-api-key'], UPSTREAM_KEY);
  assertNoKey(asked.path);
  assertNoKey(lines.join('\n'));
});

test('71 | a redirect is not followed and its headers are not passed on', async () => {
  const location = `${gateway.upstream.url}/elsewhere/x`;
  const headers = { location, 'x-goog-api-key': UPSTREAM_KEY, 'set-cookie': 's=1', 'content-type': 'text/plain' };
  gateway.upstream.script('gemini', { status: 302, headers, chunks: [''] });
  const { status, headers: got, text } = await ask(gateway, 'chat', 'test/gemini');
  assert.equal(status, 502);
  for (const name of Object.keys(headers)) if (name !== 'content-type') assert.equal(got.get(name), null);
  assert.equal(gateway.upstream.requests('elsewhere').length, 0);
  assertNoKey(text);
  gateway.clock.jump(11 * 60_000);
});

test('28 | calls without ids, or with a shared id, get distinct ids within and across turns', async () => {
  const calls = [{ functionCall: { name: 'f', args: {} } }, { functionCall: { name: 'f', args: {} } }];
  const same = calls.map(({ functionCall }) => ({ functionCall: { ...functionCall, id: 'x' } }));
  for (const served of FORMATS) {
    const ids: string[] = [];
    for (const parts of [calls, calls, same]) {
      gateway.upstream.script('gemini', answer(parts));
      const reading = readWhole(served, (await ask(gateway, served, 'test/gemini')).text);
      assert.ok(['tool_calls', 'tool_use'].includes(reading.finish ?? ''), String(reading.finish));
      ids.push(...reading.calls.map(({ id }) => id));
    }
    assert.equal(new Set(ids).size, 6, ids.join());
  }
});

test('23, 34 | a call without arguments has an empty object, and large integers survive both ways', async () => {
  const digits = '7203685477580700123';
  const text = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f","args":{"n":${digits}}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}`;
  gateway.upstream.script('gemini', wholeOf(text));
  const whole = await ask(gateway, 'chat', 'test/gemini');
  const calls = whole.json.choices[0].message.tool_calls;
  assert.deepEqual(
    calls.map((call: Json) => call.function.arguments),
    ['{}', `{"n":${digits}}`],
  );
  const native = await ask(gateway, 'messages', 'test/gemini');
  assert.ok(native.text.includes(`"input":{"n":${digits}}`), native.text);

  await sent('chat', {
    messages: [
      { role: 'user', content: 'x' },
      whole.json.choices[0].message,
      ...calls.map(({ id }: Json) => ({ role: 'tool', tool_call_id: id, content: 'ok' })),
    ],
  });
  assert.ok(gateway.upstream.requests('gemini').at(-1)!.body.toString().includes(`"args":{"n":${digits}}`));
});

test('31, 30 | results of parallel calls are one turn, and images in results stay images', async () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
  const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} });
  const result = (id: string, content: unknown) => ({ type: 'tool_result', tool_use_id: id, content });
  const { contents } = await sent('messages', {
    messages: [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: [use('a'), use('b')] },
      { role: 'user', content: [result('b', [image]), result('a', 'text'), { type: 'text', text: 'and now?' }] },
    ],
  });
  assert.deepEqual(contents[2], {
    role: 'user',
    parts: [
      { functionResponse: { id: 'a', name: 'f', response: { output: 'text' } } },
      { functionResponse: { id: 'b', name: 'f', response: { output: '' } } },
      { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } },
    ],
  });
  assert.deepEqual(contents[3], { role: 'user', parts: [{ text: 'and now?' }] });
});

test('38, 39 | consecutive turns of one role and empty contents are accepted', async () => {
  const { contents } = await sent('chat', {
    messages: [
      { role: 'user', content: 'a' },
      { role: 'user', content: '' },
      { role: 'user', content: 'b' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: '' } }],
      },
      { role: 'tool', tool_call_id: 't', content: '' },
    ],
  });
  assert.deepEqual(contents, [
    { role: 'user', parts: [{ text: 'a' }, { text: 'b' }] },
    { role: 'model', parts: [{ functionCall: { id: 't', name: 'f', args: {} } }] },
    { role: 'user', parts: [{ functionResponse: { id: 't', name: 'f', response: { output: '' } } }] },
  ]);
});

test('a seed past what the service takes becomes one that it takes, the same each time', async () => {
  assert.equal((await sent('chat', { seed: 7 })).generationConfig.seed, 7);
  const seed = 2 ** 40 + 5;
  const { generationConfig } = await sent('chat', { seed });
  assert.ok(Math.abs(generationConfig.seed) < 2 ** 31);
  assert.deepEqual((await sent('chat', { seed })).generationConfig, generationConfig);
});

function assertNoKey(text: string): void {
  const base64 = Buffer.from(UPSTREAM_KEY).toString('base64').replace(/=+$/, '');
  for (const spelling of [UPSTREAM_KEY, encodeURIComponent(UPSTREAM_KEY), base64]) {
    assert.ok(!text.includes(spelling), text);
  }
}
