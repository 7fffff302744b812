/**
 * Google's Gemini API behind a whole gateway: how it is asked, what clients of both formats get of its answers, and what
 * follows its errors. Answers are from the service's documentation.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Gateway, startGateway, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of three formats
type Json = any;

const SHARED = { id: 'test/shared' };
const gateway: Gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      flash: { kind: 'google', model: { upstream_id: 'models/gemini-2.5-flash' } },
      third: { kind: 'google', model: { upstream_id: 'gemini-3-pro-preview' } },
      first: { kind: 'google', model: SHARED },
      second: { kind: 'chat', model: SHARED },
    },
  },
);

const USAGE = { promptTokenCount: 10, candidatesTokenCount: 5, thoughtsTokenCount: 7, totalTokenCount: 22 };

function whole(parts: unknown[], more: Json = {}): Answer {
  const candidate = { content: { role: 'model', parts }, finishReason: 'STOP', index: 0, ...more.candidate };
  const body = {
    candidates: [candidate],
    usageMetadata: USAGE,
    modelVersion: 'gemini-2.5-flash',
    responseId: 'r-1',
    ...more.body,
  };
  return { headers: { 'content-type': 'application/json; charset=UTF-8' }, chunks: [JSON.stringify(body)] };
}

/** As the service ends its lines. */
function stream(events: unknown[], more: Answer = {}): Answer {
  const chunks = events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`);
  return { headers: { 'content-type': 'text/event-stream' }, chunks, ...more };
}

function piece(part: Json, more: Json = {}): Json {
  return {
    candidates: [{ content: { role: 'model', parts: [part] }, index: 0, ...more }],
    usageMetadata: USAGE,
    responseId: 'r-2',
  };
}

const ASKED = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 100 };

async function chat(model: string, body: Json = {}): Promise<{ status: number; reply: Json; wait: string | null }> {
  const response = await gateway.post('/chat/completions', { model, ...ASKED, ...body });
  return { status: response.status, reply: await response.json(), wait: response.headers.get('retry-after') };
}

async function streamed(route: string, model: string, body: Json = {}): Promise<string> {
  const response = await gateway.post(route, { model, ...ASKED, stream: true, ...body });
  assert.equal(response.status, 200);
  return response.text();
}

function chunksOf(text: string): Json[] {
  return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!));
}

test('a whole answer is asked for by the model’s own method, with the key in a header alone', async () => {
  gateway.upstream.script(
    'flash',
    whole([
      { text: 'hm', thought: true },
      { text: 'Hello', thoughtSignature: 'c2ln' },
    ]),
  );
  const { status, reply } = await chat('test/flash');
  assert.equal(status, 200);
  const asked = gateway.upstream.requests('flash').at(-1)!;
  assert.equal(asked.path, '/models/gemini-2.5-flash:generateContent');
  assert.equal(asked.headers['x-goog-api-key'], UPSTREAM_KEY);
  assert.deepEqual(Object.keys(asked.json as Json).sort(), ['contents', 'generationConfig']);
  const [choice] = reply.choices;
  assert.deepEqual([choice.message.content, choice.message.reasoning, choice.finish_reason], ['Hello', 'hm', 'stop']);
  const { prompt_tokens, completion_tokens, total_tokens, completion_tokens_details: details } = reply.usage;
  assert.deepEqual([prompt_tokens, completion_tokens, total_tokens, details.reasoning_tokens], [10, 12, 22, 7]);
  assert.equal(reply.provider, 'Provider flash');
});

test('a stream is asked for as server-sent events and reaches clients of both formats', async () => {
  const events = [
    piece({ text: 'Hel' }),
    piece({ text: 'lo é' }),
    piece({ functionCall: { name: 'f', args: { a: 1 } } }),
    piece({ functionCall: { name: 'f', args: { a: 2 } } }, { finishReason: 'STOP' }),
  ];
  gateway.upstream.script('flash', stream(events));
  const chunks = chunksOf(await streamed('/chat/completions', 'test/flash'));
  assert.equal(
    gateway.upstream.requests('flash').at(-1)!.path,
    '/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
  );
  const text = chunks.map((chunk) => chunk.choices[0]?.delta?.content ?? '').join('');
  const calls = chunks.flatMap((chunk) => chunk.choices[0]?.delta?.tool_calls ?? []);
  const ids = calls.map(({ id }: Json) => id).filter(Boolean);
  assert.equal(text, 'Hello é');
  assert.equal(new Set(ids).size, 2);
  assert.deepEqual(calls.map((call: Json) => call.function.arguments).filter(Boolean), ['{"a":1}', '{"a":2}']);
  assert.equal(chunks.flatMap((chunk) => chunk.choices[0]?.finish_reason ?? []).at(-1), 'tool_calls');

  const told = chunksOf(await streamed('/messages', 'test/flash'));
  const blocks = told.filter(({ type }) => type === 'content_block_start').map((event) => event.content_block.type);
  assert.deepEqual(blocks, ['text', 'tool_use', 'tool_use']);
  assert.equal(told.find(({ type }) => type === 'message_delta').delta.stop_reason, 'tool_use');
  assert.equal(told.at(-1).type, 'message_stop');
});

test('what a model signed returns to it on the next turn, through clients of both formats', async () => {
  const signed = [
    { text: 'plan', thought: true },
    { functionCall: { id: 'fc1', name: 'f', args: { a: 1 } }, thoughtSignature: 'Y2FsbCtzaWc=' },
  ];
  const code = { executableCode: { language: 'PYTHON', code: 'print(1)' }, thoughtSignature: 'Y29kZQ==' };
  gateway.upstream.script('third', whole([...signed, code]));
  const { reply } = await chat('test/third', { reasoning: { effort: 'low' } });
  const { message } = reply.choices[0];
  const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'done' };
  await chat('test/third', { messages: [...ASKED.messages, message, result] });
  const first = (gateway.upstream.requests('third').at(-1)!.json as Json).contents;
  const call = { functionCall: { id: 'fc1', name: 'f', args: { a: 1 } }, thoughtSignature: 'Y2FsbCtzaWc=' };
  for (const part of [{ text: 'plan', thought: true }, call, code]) {
    assert.ok(
      first[1].parts.some((one: Json) => JSON.stringify(one) === JSON.stringify(part)),
      JSON.stringify(first[1]),
    );
  }
  assert.deepEqual(first[2].parts, [{ functionResponse: { id: 'fc1', name: 'f', response: { output: 'done' } } }]);

  const response = await gateway.post('/messages', {
    model: 'test/third',
    ...ASKED,
    thinking: { type: 'enabled', budget_tokens: 1024 },
    max_tokens: 2000,
  });
  const answer: Json = await response.json();
  const back = { type: 'tool_result', tool_use_id: 'fc1', content: 'done' };
  const next = [...ASKED.messages, { role: 'assistant', content: answer.content }, { role: 'user', content: [back] }];
  await gateway.post('/messages', { model: 'test/third', messages: next, max_tokens: 100 });
  const second = (gateway.upstream.requests('third').at(-1)!.json as Json).contents;
  for (const part of [call, code]) {
    assert.ok(
      second[1].parts.some((one: Json) => JSON.stringify(one) === JSON.stringify(part)),
      JSON.stringify(second[1]),
    );
  }
});

test('a blocked prompt is a refusal, a slip of the model without content goes to the next endpoint', async () => {
  const blocked = { candidates: undefined, promptFeedback: { blockReason: 'SAFETY', blockReasonMessage: 'not this' } };
  gateway.upstream.script(
    'flash',
    whole([], { body: { ...blocked, usageMetadata: { promptTokenCount: 3, totalTokenCount: 3 } } }),
  );
  const { status, reply } = await chat('test/flash');
  assert.deepEqual([status, reply.choices[0].finish_reason, reply.usage.prompt_tokens], [200, 'content_filter', 3]);
  // The categories of clients of messages are a closed list, which has none of Google's.
  const asked = { model: 'test/flash', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] };
  const message = (await (await gateway.post('/messages', asked)).json()) as Json;
  assert.deepEqual(message.stop_details, { type: 'refusal', category: null, explanation: 'not this' });

  const slip = { candidate: { content: {}, finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: 'print(' } };
  gateway.upstream.script('first', whole([], slip));
  gateway.upstream.script('second', {
    headers: { 'content-type': 'application/json' },
    chunks: [JSON.stringify(OTHER)],
  });
  assert.equal(
    (await chat('test/shared', { provider: { order: ['first'] } })).reply.choices[0].message.content,
    'other',
  );
});

const OTHER = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'other' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

function error(code: number, status: string, message: string, details: unknown[] = []): Answer {
  const body = { error: { code, message, status, details } };
  return { status: code, headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(body)] };
}

const RETRY = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' }];
const DAILY = [{ '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId: 'RequestsPerDay' }] }];

test('every error of the service has its meaning, and shows nothing of our account', async () => {
  const cases: [Answer, number, RegExp, string | null][] = [
    [error(400, 'INVALID_ARGUMENT', 'Invalid value at contents'), 400, /Invalid value/, null],
    [
      error(
        400,
        'INVALID_ARGUMENT',
        'The input token count (5000000) exceeds the maximum number of tokens allowed (1048576).',
      ),
      400,
      /exceeds/,
      null,
    ],
    [error(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.'), 502, /credential/, null],
    [error(403, 'PERMISSION_DENIED', "Permission denied on project 'secret-project'"), 502, /credential/, null],
    [error(404, 'NOT_FOUND', 'models/x is not found for API version v1beta'), 404, /not found/, null],
    [error(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded', RETRY), 429, /Quota exceeded/, '35'],
    [error(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded', [...DAILY, ...RETRY]), 502, /exhausted/, null],
    [error(503, 'UNAVAILABLE', 'The model is overloaded.'), 529, /overloaded/, null],
    [error(500, 'INTERNAL', 'An internal error has occurred.'), 502, /internal/, null],
    [error(504, 'DEADLINE_EXCEEDED', 'Deadline expired'), 504, /Deadline/, null],
    [
      { status: 502, headers: { 'content-type': 'text/html' }, chunks: ['<html>Bad Gateway</html>'] },
      502,
      /not JSON/,
      null,
    ],
  ];
  for (const [answer, expected, text, retryAfter] of cases) {
    gateway.upstream.script('flash', answer);
    const { status, reply, wait } = await chat('test/flash');
    assert.equal(status, expected, JSON.stringify(reply));
    assert.match(reply.error.message, text);
    if (retryAfter !== null) assert.equal(wait, retryAfter);
    assert.ok(!JSON.stringify(reply).includes('secret-project'), JSON.stringify(reply));
    assert.ok(!JSON.stringify(reply).includes(UPSTREAM_KEY));
    gateway.clock.jump(11 * 60_000);
  }
});

test('an overloaded service gives way to the next endpoint', async () => {
  gateway.upstream.script('first', error(503, 'UNAVAILABLE', 'The model is overloaded.'));
  gateway.upstream.script('second', {
    headers: { 'content-type': 'application/json' },
    chunks: [JSON.stringify(OTHER)],
  });
  const { status, reply } = await chat('test/shared', { provider: { order: ['first'] } });
  assert.deepEqual([status, reply.choices[0].message.content], [200, 'other']);
  gateway.clock.jump(11 * 60_000);
});

test('a stream that is cut is an error, never an end; before anything visible the next endpoint answers', async () => {
  for (const end of ['close', 'cut', 'reset'] as const) {
    gateway.upstream.script('flash', stream([piece({ text: 'half ' })], { end }));
    const text = await streamed('/chat/completions', 'test/flash');
    assert.ok(text.includes('half ') && text.includes('"error"'), `${end}: ${text}`);
    assert.ok(!text.includes('[DONE]') && !text.includes('"finish_reason":"stop"'), `${end}: ${text}`);
    gateway.clock.jump(11 * 60_000);
  }
  gateway.upstream.script('first', stream([{ usageMetadata: USAGE }], { end: 'cut' }));
  gateway.upstream.script('second', {
    headers: { 'content-type': 'application/json' },
    chunks: [JSON.stringify(OTHER)],
  });
  const text = await streamed('/chat/completions', 'test/shared', { provider: { order: ['first'] } });
  assert.ok(text.includes('other') && text.trimEnd().endsWith('[DONE]'), text);
});

test('an error inside a stream is reported as one, bare or as an event', async () => {
  const failure = JSON.stringify(
    { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } },
    null,
    2,
  );
  for (const last of [`data: ${failure.replaceAll('\n', '')}\r\n\r\n`, failure]) {
    const { headers, chunks } = stream([piece({ text: 'half' }, { finishReason: 'STOP' })]);
    gateway.upstream.script('flash', { headers: headers!, chunks: [...chunks!, last] });
    const text = await streamed('/messages', 'test/flash');
    assert.match(text, /event: error\ndata: .*overloaded/);
    assert.ok(!text.includes('message_stop'));
    gateway.clock.jump(11 * 60_000);
  }
});

test('an answer as a list, from a service that does not send events, reaches a client that asked for a stream', async () => {
  const list = [piece({ text: 'Hel' }), piece({ text: 'lo' }, { finishReason: 'STOP' })];
  gateway.upstream.script('flash', { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(list)] });
  const text = await streamed('/chat/completions', 'test/flash');
  assert.equal(
    chunksOf(text)
      .map((chunk) => chunk.choices[0]?.delta?.content ?? '')
      .join(''),
    'Hello',
  );
  assert.ok(text.trimEnd().endsWith('[DONE]'));
});

test('several answers come side by side, whole and streamed', async () => {
  const both = ['one', 'two'].map((text, index) => ({ content: { parts: [{ text }] }, finishReason: 'STOP', index }));
  gateway.upstream.script('flash', whole([], { body: { candidates: both } }));
  const { reply } = await chat('test/flash', { n: 2 });
  assert.deepEqual(
    reply.choices.map((choice: Json) => [choice.index, choice.message.content]),
    [
      [0, 'one'],
      [1, 'two'],
    ],
  );
  assert.equal((gateway.upstream.requests('flash').at(-1)!.json as Json).generationConfig.candidateCount, 2);
  gateway.upstream.script(
    'flash',
    stream(both.map((candidate) => ({ candidates: [candidate], usageMetadata: USAGE }))),
  );
  const told: Record<number, string> = {};
  for (const chunk of chunksOf(await streamed('/chat/completions', 'test/flash', { n: 2 }))) {
    for (const choice of chunk.choices) told[choice.index] = (told[choice.index] ?? '') + (choice.delta.content ?? '');
  }
  assert.deepEqual(told, { 0: 'one', 1: 'two' });
});

test('sound in pieces reaches the client as one sound', async () => {
  const sound = Buffer.from('0123456789');
  const pieces = [sound.subarray(0, 4), sound.subarray(4, 5), sound.subarray(5)].map((bytes) =>
    piece({ inlineData: { mimeType: 'audio/L16;codec=pcm;rate=24000', data: bytes.toString('base64') } }),
  );
  pieces.push({ candidates: [{ finishReason: 'STOP' }], usageMetadata: USAGE });
  gateway.upstream.script('flash', stream(pieces));
  const chunks = chunksOf(await streamed('/chat/completions', 'test/flash'));
  const data = chunks.flatMap((chunk) => chunk.choices[0]?.delta?.audio?.data ?? []).join('');
  assert.equal(Buffer.from(data, 'base64').toString(), '0123456789');
});

test('images in a response reach the client; cached, search and image tokens are counted', async () => {
  const usageMetadata = {
    promptTokenCount: 100,
    cachedContentTokenCount: 60,
    toolUsePromptTokenCount: 20,
    candidatesTokenCount: 1290,
    totalTokenCount: 1410,
    candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1290 }],
  };
  const parts = [{ inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }];
  gateway.upstream.script('flash', whole(parts, { body: { usageMetadata } }));
  const { reply } = await chat('test/flash');
  assert.equal(reply.choices[0].message.images[0].image_url.url, 'data:image/png;base64,iVBORw0KGgo=');
  const { prompt_tokens, completion_tokens, prompt_tokens_details: details } = reply.usage;
  assert.deepEqual([prompt_tokens, completion_tokens, details.cached_tokens], [120, 1290, 60]);
});
