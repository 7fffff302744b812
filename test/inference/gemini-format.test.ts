/** What the gateway does for clients of the Gemini format besides translating: tools, rules, filters, presets, cache, logs. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { readContentStream } from '../../src/testing/clients/gemini-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { answerOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import { geminiAnswer } from '../../src/testing/upstream/gemini-answers.ts';
import { startGuarded } from '../guardrails/guarded.ts';

const pricing = { prompt: '0.000003', completion: '0.000015' };
const { gateway, guarded, control } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  {
    yaml: { io_logging: { enabled: true } },
    providers: {
      gpt: { model: { pricing } },
      google: { kind: 'gemini', model: { pricing, upstream_id: 'gemini-3-pro' } },
    },
  },
);

// biome-ignore lint/suspicious/noExplicitAny: JSON of several formats
type Json = any;

const hi = { role: 'user', parts: [{ text: 'hi' }] };
const ask = (body: object, model = 'test/gpt', headers: Record<string, string> = {}) =>
  gateway.post(`/models/${model}:generateContent`, { contents: [hi], ...body }, headers);
const stream = async (body: object, model = 'test/gpt') => {
  const path = `/models/${model}:streamGenerateContent?alt=sse`;
  return readContentStream(await (await gateway.post(path, { contents: [hi], ...body })).text());
};
const sent = (provider = 'gpt'): Json => gateway.upstream.requests(provider).at(-1)!.json;

test('a server tool runs between two turns, is shown, and is read back from the history', async () => {
  const calls = [{ id: 'call_1', name: 'datetime', arguments: '{}' }];
  const tools = [{ type: 'svc:datetime' }, { functionDeclarations: [{ name: 'f' }] }];
  for (const streams of [true, false]) {
    gateway.upstream.script('gpt', [
      answerOf('chat', streams, { calls, finish: 'tool_calls' }),
      answerOf('chat', streams, { text: 'It is late.' }),
      answerOf('chat', false, { text: 'Still.' }),
    ]);
    const parts: Json[] = streams
      ? (await stream({ tools })).candidates[0]!.parts
      : ((await (await ask({ tools })).json()) as Json).candidates[0].content.parts;
    const [call, response] = parts.filter((part) => part.toolCall ?? part.toolResponse);
    assert.equal(call.toolCall.toolType, 'svc:datetime');
    assert.equal(response.toolResponse.id, call.toolCall.id);
    assert.equal(parts.map(({ text }) => text ?? '').join(''), 'It is late.');
    await ask({ tools, contents: [hi, { role: 'model', parts }, { parts: [{ text: 'and now?' }] }] });
    const [, asked, result, said] = sent().messages;
    assert.deepEqual(
      [asked.tool_calls[0].function.name, result.role, said.content],
      ['datetime', 'tool', 'It is late.'],
    );
    assert.equal(result.content, response.toolResponse.response.output);
  }
});

test('tools that run at Google go there only, and those of disabled names nowhere', async () => {
  const googleSearch = { tools: [{ googleSearch: {} }] };
  const elsewhere = await ask(googleSearch);
  assert.equal(elsewhere.status, 400);
  gateway.upstream.script('google', geminiAnswer(false, { text: 'found' }));
  assert.equal((await ask(googleSearch, 'test/google')).status, 200);
  assert.deepEqual(sent('google').tools, googleSearch.tools);
  const path = `/workspaces/${(await control.call('GET', '/workspaces')).body.data[0].id}`;
  await control.call('PATCH', path, { disabled_server_tools: ['svc:web_search'] });
  for (const tools of [[{ googleSearch: {} }], [{ google_search: {} }], [{ type: 'svc:web_search' }]]) {
    const refused = await ask({ tools }, 'test/google');
    const { error } = (await refused.json()) as Json;
    assert.deepEqual([refused.status, error.status], [403, 'PERMISSION_DENIED'], JSON.stringify(error));
  }
  await control.call('PATCH', path, { disabled_server_tools: [] });
});

test('filters read every text, sealed reasoning and instructions too, and what they redact reaches no provider', async () => {
  const redacts = await guarded({ content_filters: [{ pattern: 'PRJ-\\d+', action: 'redact', label: '[project]' }] });
  const hidden = { svc_sealed: { origin: 'anthropic-claude-v1', text: 'About PRJ-4', signature: 'c2ln' } };
  const thoughtSignature = Buffer.from(JSON.stringify(hidden)).toString('base64');
  gateway.upstream.script('gpt', { ...answerOf('chat', false, { text: 'PRJ-9 is done' }), repeat: true });
  const body = {
    systemInstruction: { parts: [{ text: 'Hide PRJ-1.' }] },
    contents: [
      { role: 'user', parts: [{ text: 'About PRJ-2' }] },
      {
        role: 'model',
        parts: [{ text: '', thought: true, thoughtSignature }, { functionCall: { name: 'f', args: { of: 'PRJ-3' } } }],
      },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { state: 'PRJ-5' } } }] },
    ],
  };
  const reply = await redacts.post('/models/test/gpt:generateContent', body);
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  const text = JSON.stringify(sent());
  assert.doesNotMatch(text, /PRJ-\d/);
  assert.equal(text.split('[project]').length, 5, text);
});

test('only what a service can read is sent to be counted', async () => {
  const seal = Buffer.from(JSON.stringify({ svc_sealed: { origin: 'anthropic-claude-v1', signature: 'c2ln' } }));
  const thought = { text: '', thought: true, thoughtSignature: seal.toString('base64') };
  gateway.upstream.script('google', wholeOf({ totalTokens: 7 }));
  const contents = [hi, { role: 'model', parts: [thought, { text: 'Hello' }] }, hi];
  const reply = await gateway.post('/models/test/google:countTokens', { contents });
  assert.deepEqual(await reply.json(), { totalTokens: 7 });
  assert.deepEqual(sent('google').generateContentRequest.contents, [
    hi,
    { role: 'model', parts: [{ text: 'Hello' }] },
    hi,
  ]);
});

test('a request that HTTP alone makes wrong gets the status of a wrong argument', async () => {
  const path = '/models/test/gpt:streamGenerateContent';
  for (const [reply, code] of [
    [await gateway.post(path, { contents: [hi] }, { 'content-type': 'text/plain' }), 415],
    [await gateway.post(`${path}?alt=media`, { contents: [hi] }), 400],
  ] as const) {
    const { error } = (await reply.json()) as Json;
    assert.deepEqual([reply.status, error.code, error.status], [code, code, 'INVALID_ARGUMENT']);
  }
});

test('a preset gives what the request does not say, setting by setting', async () => {
  await gateway.post('/presets/brief/chat/completions', {
    model: 'test/gpt',
    messages: [{ role: 'system', content: 'Be brief.' }],
    ...{ temperature: 0.3, max_tokens: 50, stop: ['END'] },
  });
  gateway.upstream.script(
    'gpt',
    wholeOf({ ...JSON.parse(answerOf('chat', false, { text: 'ok' }).chunks![0] as string) }),
  );
  const reply = await ask({ generationConfig: { temperature: 0.9 } }, '@preset%2Fbrief');
  assert.equal(reply.status, 200, await reply.clone().text());
  const { messages, temperature, stop, max_tokens, max_completion_tokens } = sent();
  assert.deepEqual(
    [messages[0], temperature, stop, max_tokens ?? max_completion_tokens],
    [{ role: 'system', content: 'Be brief.' }, 0.9, ['END'], 50],
  );
});

test("a request's settings override those of a preset, however they are spelled", async () => {
  const schema = { type: 'object', properties: {} };
  await gateway.post('/presets/formed/chat/completions', {
    max_tokens: 50,
    temperature: 0.3,
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
  });
  for (const [given, format] of [
    [{ max_output_tokens: 7 }, 'json_schema'],
    [{ maxOutputTokens: 7, responseMimeType: 'text/plain' }, undefined],
    [
      { maxOutputTokens: 7, response_mime_type: 'application/json', response_schema: { type: 'OBJECT' } },
      'json_schema',
    ],
  ] as const) {
    gateway.upstream.script('gpt', answerOf('chat', false, { text: 'ok' }));
    const reply = await ask({ generation_config: given, preset: 'formed' });
    assert.equal(reply.status, 200, await reply.clone().text());
    const { temperature, max_tokens, max_completion_tokens, response_format } = sent();
    assert.deepEqual([temperature, max_tokens ?? max_completion_tokens, response_format?.type], [0.3, 7, format]);
  }
});

test('an answer comes from the cache with an id of its own, costs nothing, and is logged', async () => {
  const ids = new Set<string>();
  for (const model of ['test/gpt', 'test/google']) {
    const [provider] = model.split('/').slice(1) as [string];
    gateway.upstream.script(
      provider,
      provider === 'gpt' ? answerOf('chat', false, { text: 'kept' }) : geminiAnswer(false, { text: 'kept' }),
    );
    for (const served of ['MISS', 'HIT']) {
      const reply = await ask({ user: 'cache' }, model, { 'x-svc-cache': 'true' });
      assert.equal(reply.headers.get('x-svc-cache-status'), served);
      const { responseId, candidates, usageMetadata } = (await reply.json()) as Json;
      assert.equal(candidates[0].content.parts[0].text, 'kept');
      assert.equal(usageMetadata.cost === 0, served === 'HIT');
      ids.add(responseId);
      const logged = (await (await gateway.get(`/generation/content?id=${responseId}`)).json()) as Json;
      assert.equal(logged.data.output.completion, 'kept');
      assert.deepEqual(logged.data.input.messages, [hi]);
    }
  }
  assert.equal(ids.size, 4);
});

test('a stream that breaks off has no finish reason, whether it is relayed or translated', async () => {
  for (const provider of ['gpt', 'google']) {
    const told = { text: 'a long answer' };
    const { chunks = [], headers = {} } = provider === 'gpt' ? answerOf('chat', true, told) : geminiAnswer(true, told);
    gateway.upstream.script(provider, { headers, chunks: chunks.slice(0, 3), end: 'reset' });
    const { candidates, error } = await stream({}, `test/${provider}`);
    assert.ok(error !== null && candidates[0]!.finish === null, provider);
    assert.ok('a long answer'.startsWith(candidates[0]!.text) && candidates[0]!.text !== '');
  }
});

test('every path of the Gemini API is refused in the words of Google', async () => {
  for (const path of [
    '',
    '/',
    '/foo',
    '/cachedContents',
    '/tunedModels/x:generateContent',
    '/%zz',
    '/models/a/b/c/d',
  ]) {
    const refused = await fetch(`${gateway.url}/v1beta${path}`, { method: 'POST', body: '{}' });
    const { error } = (await refused.json()) as Json;
    assert.match(error.status, /^(NOT_FOUND|INVALID_ARGUMENT|UNAUTHENTICATED)$/, path);
    assert.equal(error.details[0]['@type'], 'type.googleapis.com/google.rpc.ErrorInfo', path);
  }
  const other = (await (await fetch(`${gateway.url}/v1/foo`)).json()) as Json;
  assert.equal(other.error.status, undefined);
});

test('what else the SDK of Google calls is 404, in its form, and says what to use instead', async () => {
  const sources = readFileSync('node_modules/@google/genai/dist/node/index.mjs', 'utf8');
  const called = [
    ...[...sources.matchAll(/formatMap\('([^']+)'/g)].map(([, path]) => `/${path!.replace('{api_version}/', '')}`),
    ...[...sources.matchAll(/pathToFunc\("([^"]+)"/g)].map(([, path]) => path!.replace('{api_version}/', '')),
  ];
  const words = [...new Set(called.map((path) => /^\/(?:upload\/)?(\w+(?::\w+)?)/.exec(path)?.[1] ?? ''))];
  // Those of Vertex AI, and those that are served.
  const others = ['batchPredictionJobs', 'upload', 'files', 'decisions', ''];
  const unserved = words.filter((word) => !others.includes(word));
  assert.ok(unserved.length > 12, unserved.join());
  const google = { 'x-goog-api-key': INFERENCE_KEY };
  const paths = [
    ...unserved.flatMap((word) => [`/v1/${word}`, `/v1beta/${word}/x`]),
    ...['/v1/operations/x', '/v1beta/models/test/gpt/operations/x', '/v1/batches/x', '/v1beta/batches/x:cancel'],
    ...['/upload/v1beta/fileSearchStores/x:uploadToFileSearchStore', '/v1/fileSearchStores/x/documents/y'],
    '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent',
  ];
  for (const path of paths) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const refused = await fetch(gateway.url + path, { method, headers: google });
      const { error } = (await refused.json()) as Json;
      assert.deepEqual([refused.status, error.status], [404, 'NOT_FOUND'], `${method} ${path}: ${error.message}`);
      assert.match(error.message, / is not served: \w/, path);
    }
  }
  for (const method of ['predict', 'predictLongRunning', 'batchGenerateContent', 'computeTokens', 'other']) {
    const url = `${gateway.url}/v1/models/test/gpt:${method}`;
    const headers = { ...google, 'content-type': 'application/json' };
    const refused = await fetch(url, { method: 'POST', headers, body: '{}' });
    const { error } = (await refused.json()) as Json;
    assert.equal(refused.status, 404);
    assert.match(error.message, method === 'other' ? /must be one of/ : new RegExp(`^${method} is not served: use `));
  }
  const own = await gateway.get('/batches');
  assert.equal(own.status, 200, 'other clients have batches below /v1');
});

test('an empty header does not hide the key of the query, and events are only for streams', async () => {
  const at = (query: string) => `${gateway.url}/v1beta/models/test/gpt:generateContent?key=${INFERENCE_KEY}${query}`;
  const post = (query: string, headers: Record<string, string>) =>
    fetch(at(query), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ contents: [hi] }),
    });
  for (const name of ['authorization', 'x-api-key', 'x-goog-api-key']) {
    gateway.upstream.script('gpt', [answerOf('chat', false, { text: 'in' })]);
    assert.equal((await post('', { [name]: '' })).status, 200, name);
  }
  const refused = await post('&alt=sse', {});
  const { error } = (await refused.json()) as Json;
  assert.deepEqual([refused.status, error.details[1].fieldViolations[0].field], [400, 'alt']);
});

test('what is no base64 is refused with its path, in every format', async () => {
  const image = { type: 'image_url', image_url: { url: 'file:///x' } };
  const pdf = 'data:application/pdf;base64,no!';
  const [text, audio] = [
    { type: 'text', text: 'x' },
    { data: '!!', format: 'wav' },
  ];
  const inline = (mimeType: string) => ({
    contents: [{ role: 'user', parts: [{ inlineData: { mimeType, data: 'file:///etc/passwd' } }] }],
  });
  const chat = (part: object) => ({ messages: [{ role: 'user', content: [text, part] }] });
  const items = (part: object) => ({ input: [{ role: 'user', content: [part] }] });
  const document = { type: 'base64', media_type: 'application/pdf', data: '??' };
  const long = `data:image/png;base64,iVBORw0KGgo${'A'.repeat(999)}!`;
  const cases: [route: string, body: object, path: string][] = [
    ['/models/test/google:generateContent', inline('image/png'), 'contents[0].parts[0].inlineData.data'],
    ['/models/test/gpt:generateContent', inline('audio/wav'), 'contents[0].parts[0].inlineData.data'],
    ['/chat/completions', chat({ type: 'input_audio', input_audio: audio }), 'content[1].input_audio.data'],
    ['/chat/completions', chat({ type: 'image_url', image_url: { url: long } }), 'content[1].image_url.url'],
    ['/chat/completions', chat({ type: 'file', file: { file_data: pdf } }), 'content[1].file.file_data'],
    ['/messages', { max_tokens: 9, ...chat({ type: 'document', source: document }) }, 'content[1].source.data'],
    ['/responses', items({ type: 'input_audio', input_audio: audio }), 'input[0].content[0].input_audio.data'],
    ['/responses', items({ type: 'input_file', file_data: pdf }), 'input[0].content[0].file_data'],
    ['/responses', items({ type: 'input_file', file_data: 'file:///etc/passwd' }), 'input[0].content[0].file_data'],
    ['/moderations', { input: [image] }, 'input[0].image_url.url'],
    ['/embeddings', { input: [{ content: [image] }] }, 'input[0].content[0].image_url.url'],
    ['/moderations', { input: [{ type: 'image_url', image_url: { url: pdf } }] }, 'input[0].image_url.url'],
  ];
  for (const [route, body, path] of cases) {
    const named = route.startsWith('/models') ? body : { model: 'test/gpt', ...body };
    const refused = await gateway.post(route, named);
    const told = await refused.text();
    assert.ok(refused.status === 400 && told.includes(`${path} `), `${route}: ${told}`);
  }
});

for (const provider of ['gpt', 'google']) {
  for (const query of ['?alt=sse', '']) {
    const streamed = `/models/test/${provider}:streamGenerateContent${query}`;

    test(`a client that leaves a stream ends the call, and pays for what was said | ${provider} ${query}`, async () => {
      const told = { text: 'a long answer that is never read' };
      const { chunks = [], headers = {} } =
        provider === 'gpt' ? answerOf('chat', true, told) : geminiAnswer(true, told);
      gateway.upstream.script(provider, { headers, chunks: chunks.slice(0, 3), end: 'stall' });
      const leaving = new AbortController();
      const reply = await fetch(gateway.api + streamed, {
        method: 'POST',
        headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ contents: [hi] }),
        signal: leaving.signal,
      });
      const first = await reply.body!.getReader().read();
      assert.doesNotMatch(Buffer.from(first.value!).toString(), /finishReason/);
      leaving.abort();
      const id = reply.headers.get('x-generation-id');
      const row = await until(async () => {
        const { data } = (await (await gateway.get(`/generation?id=${id}`)).json()) as Json;
        return data;
      }, 'the row is written');
      assert.equal(row.cancelled, true);
      assert.ok(row.tokens_prompt > 0 && row.tokens_completion > 0 && row.total_cost > 0, JSON.stringify(row));
      const call = gateway.upstream.requests(provider).at(-1)!;
      await until(() => call.closedEarlyAt !== undefined, 'the call is ended');
    });

    test(`an answer that a filter stops has an error and no finish reason | ${provider} ${query}`, async () => {
      const rule = { slug: 'email', action: 'block', apply_to: ['response'] };
      const key = await guarded({ content_filter_builtins: [rule] });
      const told = { text: 'Here it comes, as you asked: bob@example.com, and more.' };
      gateway.upstream.script(provider, provider === 'gpt' ? answerOf('chat', true, told) : geminiAnswer(true, told));
      const { body, headers } = await key.post(streamed, { contents: [hi] });
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      assert.doesNotMatch(text, /finishReason|bob/);
      assert.match(text, /"error":\{"code":403/);
      const row = (await control.call('GET', `/generation?id=${headers.get('x-generation-id')}`)).body.data;
      assert.ok(row.tokens_completion > 0 && row.total_cost > 0);
    });
  }
}
