/** The official `@google/genai` package, unmodified, on models of several formats. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ApiError, FunctionCallingConfigMode, type GenerateContentResponse, GoogleGenAI, Type } from '@google/genai';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, errorOf, streamOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import { chatChunk, chatStream } from '../../src/testing/upstream/chat-upstream.ts';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const pricing = { prompt: '0.000003', completion: '0.000015' };
const model = { pricing, input_modalities: ['text', 'image'] };
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: { kind: 'chat', model },
      claude: { kind: 'messages', model },
      gemini: { kind: 'gemini', model: { ...model, upstream_id: 'gemini-3-pro' } },
      vectors: { kind: 'chat', model: { pricing, output_modalities: ['embeddings'] } },
    },
  },
);
const genai = new GoogleGenAI({
  apiKey: INFERENCE_KEY,
  httpOptions: { baseUrl: gateway.url, retryOptions: { attempts: 1 } },
});

const USAGE = { input: 10, output: 4 };
const FORMATS = { chat: 'chat', claude: 'messages', gemini: 'gemini' } as const;

interface Told {
  text?: string;
  calls?: { id: string; name: string; arguments: string }[];
}

function answer(format: 'chat' | 'messages' | 'gemini', stream: boolean, told: Told) {
  if (format !== 'gemini') return answerOf(format, stream, { ...told, usage: USAGE });
  const { text, calls = [] } = told;
  const parts = [
    ...(text === undefined ? [] : [{ text }]),
    ...calls.map(({ id, name, arguments: args }) => ({ functionCall: { id, name, args: JSON.parse(args) } })),
  ];
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 4, totalTokenCount: 14 };
  const reply = { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }], usageMetadata };
  return stream ? streamOf([`data: ${JSON.stringify(reply)}\r\n\r\n`]) : wholeOf(reply);
}

async function streamed(pending: Promise<AsyncGenerator<GenerateContentResponse>>) {
  const chunks: GenerateContentResponse[] = [];
  for await (const chunk of await pending) chunks.push(chunk);
  return { chunks, text: chunks.map(({ text }) => text ?? '').join('') };
}

for (const [name, format] of Object.entries(FORMATS)) {
  test(`a text, whole and streamed, from a model of the ${format} format`, async () => {
    const told = { text: 'Hello there' };
    gateway.upstream.script(name, [answer(format, false, told), answer(format, true, told)]);
    const request = {
      model: `test/${name}`,
      contents: 'hi',
      config: { maxOutputTokens: 50, systemInstruction: 'be kind' },
    };
    const reply = await genai.models.generateContent(request);
    assert.equal(reply.text, 'Hello there');
    assert.equal(reply.candidates![0]!.finishReason, 'STOP');
    assert.match(reply.responseId!, /^gen-/);
    assert.equal(reply.modelVersion, `test/${name}`);
    assert.equal(reply.usageMetadata!.promptTokenCount, 10);
    assert.equal(reply.usageMetadata!.candidatesTokenCount, 4);
    assert.equal(reply.usageMetadata!.totalTokenCount, 14);
    const { chunks, text } = await streamed(genai.models.generateContentStream(request));
    assert.equal(text, 'Hello there');
    assert.equal(chunks.at(-1)!.usageMetadata!.totalTokenCount, 14);
    assert.equal(chunks.filter(({ candidates }) => candidates?.[0]?.finishReason === 'STOP').length, 1);
    const rows = await gateway.get(`/generation?id=${reply.responseId}`, MANAGEMENT_KEY);
    assert.equal(rows.status, 200);
  });

  test(`functions, and an image, with a model of the ${format} format`, async () => {
    const call = { name: 'weather', arguments: '{"city":"Rome"}' };
    gateway.upstream.script(name, [
      answer(format, true, { calls: [{ id: 'call_abc', ...call }] }),
      answer(format, false, { text: 'Warm' }),
    ]);
    const tools = [
      {
        functionDeclarations: [
          { name: 'weather', parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } } } },
        ],
      },
    ];
    const contents: object[] = [
      { role: 'user', parts: [{ text: 'weather?' }, { inlineData: { mimeType: 'image/png', data: PNG } }] },
    ];
    const config = {
      ...{ maxOutputTokens: 50, tools },
      toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['weather'] } },
    };
    const { chunks } = await streamed(genai.models.generateContentStream({ model: `test/${name}`, contents, config }));
    const calls = chunks.flatMap(({ functionCalls }) => functionCalls ?? []);
    assert.deepEqual(
      calls.map(({ name: called, args }) => [called, args]),
      [['weather', { city: 'Rome' }]],
    );
    const parts = chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
    contents.push(
      { role: 'model', parts },
      {
        role: 'user',
        parts: [{ functionResponse: { id: calls[0]!.id, name: 'weather', response: { output: '30 C' } } }],
      },
    );
    const reply = await genai.models.generateContent({
      model: `test/${name}`,
      contents,
      config: { maxOutputTokens: 50, tools },
    });
    assert.equal(reply.text, 'Warm');
    const sent = gateway.upstream
      .requests(name)
      .slice(-2)
      .map(({ body }) => body.toString());
    assert.ok(sent[0]!.includes(PNG), 'the image is sent');
    assert.ok(sent[1]!.includes('30 C') && sent[1]!.includes('Rome'));
  });
}

test('thought signatures of Google return to Google in their part', async () => {
  const parts = [
    { text: 'Let me see.', thought: true },
    { functionCall: { id: 'c1', name: 'f', args: { a: 1 } }, thoughtSignature: 'c2lnbmVk' },
  ];
  const answer = { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }] };
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 2, thoughtsTokenCount: 5, totalTokenCount: 17 };
  const done = { candidates: [{ content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP' }] };
  gateway.upstream.script('gemini', [wholeOf({ ...answer, usageMetadata }), wholeOf({ ...done, usageMetadata })]);
  const tools = [{ functionDeclarations: [{ name: 'f' }] }];
  const config = { tools, thinkingConfig: { includeThoughts: true } };
  const first = await genai.models.generateContent({ model: 'test/gemini', contents: 'hi', config });
  const content = first.candidates![0]!.content!;
  assert.deepEqual(content.parts, parts);
  assert.equal(first.usageMetadata!.thoughtsTokenCount, 5);
  const response = { functionResponse: { id: 'c1', name: 'f', response: { output: 'x' } } };
  const contents = [{ role: 'user', parts: [{ text: 'hi' }] }, content, { role: 'user', parts: [response] }];
  await genai.models.generateContent({ model: 'test/gemini', contents, config });
  const { contents: sent } = gateway.upstream.requests('gemini').at(-1)!.json as { contents: { parts: object[] }[] };
  assert.deepEqual(sent[1]!.parts, parts);
});

test('errors have the shape of Google, also in the middle of a stream', async () => {
  gateway.upstream.script('chat', [
    errorOf('chat', 400, 'no'),
    {
      headers: { 'content-type': 'text/event-stream' },
      chunks: [chatChunk({ role: 'assistant', content: 'Hel' }), 'data: {"error":{"message":"no","code":500}}\n\n'],
    },
  ]);
  const request = { model: 'test/chat', contents: 'hi' };
  await assert.rejects(genai.models.generateContent(request), (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(JSON.parse(error.message).error.status, error.status === 400 ? 'INVALID_ARGUMENT' : 'UNAVAILABLE');
    return true;
  });
  await assert.rejects(streamed(genai.models.generateContentStream(request)), ApiError);
  await assert.rejects(genai.models.generateContent({ model: 'test/none', contents: 'hi' }), (error) => {
    assert.ok(error instanceof ApiError && error.status === 400);
    return true;
  });
  const stranger = new GoogleGenAI({
    apiKey: 'sk-no',
    httpOptions: { baseUrl: gateway.url, retryOptions: { attempts: 1 } },
  });
  await assert.rejects(stranger.models.generateContent(request), (error) => {
    assert.ok(error instanceof ApiError && error.status === 401);
    assert.equal(JSON.parse(error.message).error.status, 'UNAUTHENTICATED');
    return true;
  });
});

test('without alt=sse a stream is one list, and the key may be in the query', async () => {
  gateway.upstream.script('chat', [chatStream('Hello')]);
  const url = `${gateway.url}/v1beta/models/test/chat:streamGenerateContent?key=${INFERENCE_KEY}`;
  const body = JSON.stringify({ contents: [{ parts: [{ text: 'hi' }] }] });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  assert.match(response.headers.get('content-type')!, /^application\/json/);
  const list = (await response.json()) as { candidates?: { content: { parts: { text?: string }[] } }[] }[];
  const texts = list.flatMap(({ candidates = [] }) => candidates.flatMap(({ content }) => content.parts));
  assert.equal(texts.map(({ text }) => text).join(''), 'Hello');
  const other = await fetch(url.replace('streamGenerateContent', 'predict'), {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body },
  });
  assert.equal(other.status, 404);
  const own = await fetch(`${gateway.api}/key?key=${INFERENCE_KEY}`);
  assert.equal(own.status, 401, 'other operations take no key from the query');
});

test('what chat would refuse is refused here too, in the words of this format', async () => {
  const refused: [object, string][] = [
    [{ generationConfig: { maxOutputTokens: '5' } }, 'generationConfig.maxOutputTokens'],
    [{ generation_config: { candidate_count: 1_000_000 } }, 'generationConfig.candidateCount'],
    [{ generationConfig: { stopSequences: [5] } }, 'generationConfig.stopSequences[0]'],
    [{ provider: { only: 'acme' } }, 'provider.only'],
    [{ provider: 5 }, 'provider'],
    [{ user: {} }, 'user'],
    [{ plugins: 'web' }, 'plugins'],
  ];
  const before = gateway.upstream.requests('chat').length;
  for (const [more, path] of refused) {
    const response = await fetch(`${gateway.url}/v1beta/models/test/chat:generateContent`, {
      method: 'POST',
      headers: { 'x-goog-api-key': INFERENCE_KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ contents: [{ parts: [{ text: 'hi' }] }], ...more }),
    });
    const { error } = (await response.json()) as { error: { message: string; details: { metadata: object }[] } };
    assert.equal(response.status, 400, error.message);
    assert.deepEqual(error.details[0]!.metadata, { path });
    assert.ok(error.message.startsWith(`${path} `), error.message);
  }
  assert.equal(gateway.upstream.requests('chat').length, before);
});

test('tokens are counted, by the provider where it can', async () => {
  gateway.upstream.script('claude', [wholeOf({ input_tokens: 17 })]);
  const counted = await genai.models.countTokens({ model: 'test/claude', contents: 'hello there' });
  assert.equal(counted.totalTokens, 17);
  const { path, json } = gateway.upstream.requests('claude').at(-1)!;
  assert.match(path, /count_tokens/);
  assert.match(JSON.stringify(json), /hello there/);
  const estimated = await genai.models.countTokens({ model: 'test/chat', contents: 'hello there' });
  assert.ok(estimated.totalTokens! > 0);
  const config = { responseMimeType: 'application/json', responseJsonSchema: { type: 'object' }, candidateCount: 2 };
  const asked = { contents: [{ parts: [{ text: 'hello there' }] }], generationConfig: config };
  const whole = await gateway.post('/models/test/chat:countTokens', { generateContentRequest: asked });
  assert.deepEqual(await whole.json(), { totalTokens: estimated.totalTokens, estimated: true });
  await assert.rejects(genai.models.countTokens({ model: 'test/none', contents: 'x' }), /test\/none/);
  const wrong = await gateway.post('/models/test/claude:countTokens', {
    contents: [{ role: 'user', parts: [{ text: 'x' }] }],
    generationConfig: { stopSequences: [null] },
  });
  assert.equal(wrong.status, 400, await wrong.clone().text());
  assert.match(await wrong.text(), /stopSequences/);
});

test('a whole request is counted under both spellings, and refused together with contents', async () => {
  const contents = [{ role: 'user', parts: [{ text: 'hello there' }] }];
  const count = (body: object) => gateway.post('/models/test/chat:countTokens', body);
  for (const name of ['generateContentRequest', 'generate_content_request']) {
    const { totalTokens } = (await (await count({ [name]: { model: 'models/x', contents } })).json()) as {
      totalTokens: number;
    };
    assert.ok(totalTokens > 0, name);
    for (const body of [{ [name]: { contents }, contents }, { [name]: 5 }]) {
      const reply = await count(body);
      assert.equal(reply.status, 400, await reply.clone().text());
      assert.match(await reply.text(), /generateContentRequest|generate_content_request/);
    }
  }
});

test('an answer of a model at Google arrives as Google wrote it, with the cost', async () => {
  const candidate = {
    content: { role: 'model', parts: [{ text: 'Rome, 20 C' }] },
    finishReason: 'STOP',
    index: 0,
    safetyRatings: [{ category: 'HARM_CATEGORY_HATE_SPEECH', probability: 'NEGLIGIBLE' }],
    groundingMetadata: { webSearchQueries: ['weather'], searchEntryPoint: { renderedContent: '<b>é</b>' } },
    avgLogprobs: -0.012345678901234567,
  };
  const usageMetadata = {
    promptTokenCount: 10,
    candidatesTokenCount: 4,
    totalTokenCount: 14,
    trafficType: 'ON_DEMAND',
  };
  const reply = { candidates: [candidate], usageMetadata, modelVersion: 'gemini-3-pro', responseId: 'g1', more: [1] };
  const events = [{ ...reply, candidates: [{ ...candidate, finishReason: undefined }] }, reply];
  gateway.upstream.script('gemini', [
    wholeOf(reply),
    streamOf(events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`)),
  ]);
  const config = { tools: [{ googleSearch: {} }], safetySettings: [] };
  const whole = await genai.models.generateContent({ model: 'test/gemini', contents: 'weather?', config });
  assert.deepEqual(whole.candidates, [candidate]);
  const { cost, is_byok, cost_details, ...counts } = whole.usageMetadata as unknown as Record<string, unknown>;
  assert.deepEqual(counts, usageMetadata);
  assert.deepEqual([cost, is_byok, typeof cost_details], [0.00009, false, 'object']);
  const { json, path } = gateway.upstream.requests('gemini').at(-1)!;
  assert.deepEqual((json as { tools: unknown }).tools, config.tools);
  assert.ok(!('model' in (json as object)) && path.endsWith(':generateContent'));
  const { chunks } = await streamed(
    genai.models.generateContentStream({ model: 'test/gemini', contents: 'weather?', config }),
  );
  assert.deepEqual(chunks.at(-1)!.candidates, [candidate]);
  assert.equal((chunks.at(-1)!.usageMetadata as unknown as { cost: number }).cost, 0.00009);
});

test('a chat keeps its history over streams, with the reasoning of another vendor in it', async () => {
  const thinking = { text: 'Let me see.', signature: 'c2lnbmVkIGJ5IENsYXVkZQ==' };
  const calls = [{ id: 'toolu_1', name: 'f', arguments: '{"a":1}' }];
  gateway.upstream.script('claude', [
    answerOf('messages', true, { thinking, text: 'Hello there', calls, usage: USAGE }),
    answerOf('messages', true, { text: 'Done', usage: USAGE }),
  ]);
  for (const includeThoughts of [false, true]) {
    const config = {
      maxOutputTokens: 4_000,
      tools: [{ functionDeclarations: [{ name: 'f' }] }],
      thinkingConfig: { includeThoughts, thinkingBudget: 1_024 },
    };
    if (includeThoughts) {
      gateway.upstream.script('claude', [
        answerOf('messages', true, { thinking, text: 'Hello there', calls, usage: USAGE }),
        answerOf('messages', true, { text: 'Done', usage: USAGE }),
      ]);
    }
    const chat = genai.chats.create({ model: 'test/claude', config });
    const first = await streamed(chat.sendMessageStream({ message: 'hi' }));
    assert.equal(first.text, 'Hello there');
    const parts = first.chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
    const thoughts = parts.filter(({ thought }) => thought).map(({ text }) => text);
    assert.equal(thoughts.join(''), includeThoughts ? thinking.text : '');
    const response = { id: 'toolu_1', name: 'f', response: { output: 'x' } };
    assert.equal((await streamed(chat.sendMessageStream({ message: [{ functionResponse: response }] }))).text, 'Done');
    const { messages } = gateway.upstream.requests('claude').at(-1)!.json as { messages: { content: unknown }[] };
    assert.deepEqual(messages[1]!.content, [
      { type: 'thinking', thinking: thinking.text, signature: thinking.signature },
      { type: 'text', text: 'Hello there' },
      { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } },
    ]);
  }
});

test('structured output, an image in and an image out', async () => {
  gateway.upstream.script('chat', [
    wholeOf({
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          message: {
            role: 'assistant',
            content: '{"a":"b"}',
            images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }],
          },
        },
      ],
      usage: { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 },
    }),
  ]);
  const schema = { type: Type.OBJECT, properties: { a: { type: Type.STRING, nullable: true } }, required: ['a'] };
  const reply = await genai.models.generateContent({
    model: 'test/chat',
    contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }, { text: 'what?' }] }],
    config: { responseMimeType: 'application/json', responseSchema: schema },
  });
  const [, image] = reply.candidates![0]!.content!.parts!;
  assert.deepEqual(image, { inlineData: { mimeType: 'image/png', data: PNG } });
  const sent = gateway.upstream.requests('chat').at(-1)!.json as {
    response_format: { json_schema: { schema: unknown } };
  };
  assert.deepEqual(sent.response_format.json_schema.schema, {
    type: 'object',
    properties: { a: { type: ['string', 'null'] } },
    required: ['a'],
  });
});

test('models are listed in pages, and single ones are found', async () => {
  const names: string[] = [];
  for await (const { name } of await genai.models.list({ config: { pageSize: 2 } })) names.push(name!);
  for (const id of ['chat', 'claude', 'gemini', 'vectors']) assert.ok(names.includes(`models/test/${id}`), id);
  assert.equal(new Set(names).size, names.length);
  const one = await genai.models.get({ model: 'test/vectors' });
  assert.deepEqual(one.supportedActions, ['embedContent', 'batchEmbedContents']);
  assert.ok((await genai.models.get({ model: 'models/test/chat' })).supportedActions!.includes('generateContent'));
  await assert.rejects(genai.models.get({ model: 'test/none' }), ApiError);
  const wrong = await fetch(`${gateway.url}/v1beta/models?pageToken=x&key=${INFERENCE_KEY}`);
  const { error } = (await wrong.json()) as { error: { status: string } };
  assert.deepEqual([wrong.status, error.status], [400, 'INVALID_ARGUMENT']);
});

test('contents are embedded, one and several', async () => {
  const data = [0, 1].map((index) => ({ object: 'embedding', index, embedding: [index, 0.5] }));
  const usage = { prompt_tokens: 4, total_tokens: 4 };
  gateway.upstream.script('vectors', [
    wholeOf({ object: 'list', model: 'm', data, usage }),
    wholeOf({ object: 'list', model: 'm', data: data.slice(0, 1), usage }),
    errorOf('chat', 400, 'too long'),
  ]);
  const config = { taskType: 'RETRIEVAL_QUERY', outputDimensionality: 2 };
  const { embeddings } = await genai.models.embedContent({ model: 'test/vectors', contents: ['a', 'b'], config });
  assert.deepEqual(
    embeddings!.map(({ values }) => values),
    [
      [0, 0.5],
      [1, 0.5],
    ],
  );
  const { input, dimensions } = gateway.upstream.requests('vectors').at(-1)!.json as Record<string, unknown>;
  assert.deepEqual([input, dimensions], [['a', 'b'], 2]);
  const embed = (body: object) => gateway.post('/models/test/vectors:embedContent', body);
  const content = { parts: [{ text: 'a' }] };
  const single = (await (await embed({ content })).json()) as { embedding: unknown; usageMetadata: { cost: number } };
  assert.deepEqual(single.embedding, { values: [0, 0.5] });
  assert.equal(single.usageMetadata.cost, 0.000012);
  const failed = (await (await embed({ content })).json()) as { error: { status: string } };
  assert.equal(failed.error.status, 'INVALID_ARGUMENT');
  gateway.upstream.script('vectors', wholeOf({ object: 'list', model: 'm', data: data.slice(0, 1), usage }));
  await embed({ content, task_type: 'RETRIEVAL_QUERY', output_dimensionality: 3, title: null, model: null });
  assert.equal((gateway.upstream.requests('vectors').at(-1)!.json as { dimensions: number }).dimensions, 3);
  const batch = (body: object) => gateway.post('/models/test/vectors:batchEmbedContents', body);
  for (const [reply, message] of [
    [await embed({ content, title: 't' }), /^title is not supported/],
    [await embed({ content, taskType: 'A', task_type: 'B' }), /^task_type repeats taskType/],
    [await embed({ content: { parts: [{ text: 'a', inlineData: {} }] } }), /^content.parts\[0\].inlineData cannot/],
    [await batch({ requests: [{ content }], taskType: 'A' }), /^taskType is not supported/],
    [await batch({ requests: Array(2_049).fill({ content }) }), /^requests must have at most/],
  ] as const) {
    const { error } = (await reply.json()) as { error: { code: number; message: string } };
    assert.deepEqual([reply.status, error.code], [400, 400]);
    assert.match(error.message, message);
  }
});
