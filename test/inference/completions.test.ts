/** `POST /completions` and `POST /messages/count_tokens` through a whole gateway, the former with its SDK too. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import OpenAI from 'openai';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { talk: { kind: 'chat' }, claude: { kind: 'messages' }, gemini: { kind: 'gemini' } } },
);

const openai = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api, maxRetries: 0 });

const whole = (content: string, more: Record<string, unknown> = {}) => ({
  headers: { 'content-type': 'application/json' },
  chunks: [
    JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop', ...more }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    }),
  ],
});

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: unknown, finish: string | null = null) =>
  event({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish }],
  });

test('a prompt is continued: one user message upstream, a text completion for the client', async () => {
  gateway.upstream.script('talk', [
    whole(' there was light', {
      logprobs: {
        content: [
          {
            token: ' there',
            logprob: -0.1,
            bytes: null,
            top_logprobs: [{ token: ' there', logprob: -0.1, bytes: null }],
          },
          { token: ' was', logprob: -0.2, bytes: null, top_logprobs: [] },
        ],
      },
    }),
  ]);
  const answer = await openai.completions.create({
    model: 'test/talk',
    prompt: 'And',
    echo: true,
    logprobs: 1,
    temperature: 0.5,
  });
  assert.equal(answer.object, 'text_completion');
  const [choice] = answer.choices;
  assert.equal(choice!.text, 'And there was light');
  assert.equal(choice!.finish_reason, 'stop');
  assert.deepEqual(choice!.logprobs, {
    tokens: [' there', ' was'],
    token_logprobs: [-0.1, -0.2],
    top_logprobs: [{ ' there': -0.1 }, {}],
    text_offset: [3, 9],
  });
  assert.equal(answer.usage!.total_tokens, 5);
  const sent = gateway.upstream.requests('talk').at(-1)!.json as Record<string, unknown>;
  assert.deepEqual(sent['messages'], [{ role: 'user', content: 'And' }]);
  assert.deepEqual(
    [sent['max_tokens'], sent['temperature'], sent['logprobs'], sent['top_logprobs']],
    [16, 0.5, true, 1],
  );
  assert.equal('prompt' in sent || 'echo' in sent, false);
  const row = await gateway.get(`/generation?id=${answer.id}`);
  assert.equal(row.status, 200);
});

test('a stream of completions has the same text in pieces, and ends with its marker', async () => {
  gateway.upstream.script('talk', [
    {
      headers: { 'content-type': 'text/event-stream' },
      chunks: [
        chunk({ role: 'assistant', content: '' }),
        chunk({ reasoning_content: 'hidden' }),
        chunk({ content: 'one ' }),
        chunk({ content: 'two' }),
        chunk({}, 'length'),
        event({ id: 'c', choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } }),
        'data: [DONE]\n\n',
      ],
    },
  ]);
  const stream = await openai.completions.create({ model: 'test/talk', prompt: 'count', stream: true, echo: true });
  const texts: string[] = [];
  const ends: unknown[] = [];
  for await (const { object, choices } of stream) {
    assert.equal(object, 'text_completion');
    for (const { text, finish_reason } of choices) {
      texts.push(text);
      if (finish_reason) ends.push(finish_reason);
    }
  }
  assert.equal(texts.join(''), 'countone two');
  assert.deepEqual(ends, ['length']);
});

test('a stream that dies is an error in the older format too', async () => {
  gateway.upstream.script('talk', [
    { headers: { 'content-type': 'text/event-stream' }, chunks: [chunk({ content: 'half' })], end: 'cut' },
  ]);
  const response = await gateway.post('/completions', { model: 'test/talk', prompt: 'x', stream: true });
  const text = await response.text();
  assert.match(text, /"text":"half"/);
  assert.match(text, /"error":\{"code":502/);
  assert.doesNotMatch(text, /\[DONE\]/);
});

test('what a conversation cannot do is refused with its field', async () => {
  const cases: [Record<string, unknown>, RegExp][] = [
    [{}, /prompt/],
    [{ prompt: [] }, /prompt/],
    [{ model: 'test/claude', prompt: ['a', 'b'] }, /prompt must be a single string/],
    [{ model: 'test/claude', prompt: [1, 2] }, /token ids/],
    [{ model: 'test/claude', prompt: 'a', suffix: 'b' }, /suffix/],
    [{ model: 'test/claude', prompt: 'a', best_of: 2 }, /best_of/],
    [{ prompt: 'a', logprobs: 6 }, /logprobs/],
    [{ prompt: 'a', temperature: 3 }, /temperature/],
  ];
  for (const [body, message] of cases) {
    const response = await gateway.post('/completions', { model: 'test/talk', ...body });
    assert.equal(response.status, 400, JSON.stringify(body));
    assert.match(await response.text(), message);
  }
});

const conversation = {
  model: 'test/claude',
  max_tokens: 5,
  stream: true,
  metadata: { user_id: 'u' },
  system: 'be brief',
  messages: [{ role: 'user', content: 'hello world' }],
};

test('tokens are counted by the provider, which sees only what its operation takes', async () => {
  gateway.upstream.script('claude', [
    { headers: { 'content-type': 'application/json' }, chunks: ['{"input_tokens":14}'] },
  ]);
  const response = await gateway.post('/messages/count_tokens', conversation);
  assert.deepEqual(await response.json(), { input_tokens: 14 });
  const { path, json } = gateway.upstream.requests('claude').at(-1)!;
  assert.equal(path, '/messages/count_tokens');
  assert.deepEqual(json, { model: 'upstream-claude', system: 'be brief', messages: conversation.messages });
});

test('without a provider that counts, or while it fails, the count is an estimate that says so', async () => {
  gateway.upstream.script('claude', [{ status: 529, chunks: ['{}'] }]);
  for (const model of ['test/claude', 'test/talk']) {
    const response = await gateway.post('/messages/count_tokens', { ...conversation, model });
    const count = (await response.json()) as { input_tokens: number; estimated: boolean };
    assert.equal(count.estimated, true);
    assert.ok(count.input_tokens >= 5 && count.input_tokens < 40, JSON.stringify(count));
  }
});

test('an error of the provider about a conversation is in the messages format', async () => {
  gateway.upstream.script('claude', [
    {
      status: 400,
      headers: { 'content-type': 'application/json' },
      chunks: ['{"type":"error","error":{"type":"invalid_request_error","message":"messages: odd"}}'],
    },
  ]);
  const response = await gateway.post('/messages/count_tokens', conversation);
  assert.equal(response.status, 400);
  const body = (await response.json()) as { type: string; error: { type: string; message: string } };
  assert.deepEqual([body.type, body.error.type], ['error', 'invalid_request_error']);
  assert.match(body.error.message, /odd/);
});

test('a service of another format that counts is asked in its own words', async () => {
  gateway.upstream.script('gemini', [
    { headers: { 'content-type': 'application/json' }, chunks: ['{"totalTokens":31}'] },
  ]);
  const tools = [{ name: 'look', description: 'Looks', input_schema: { type: 'object', properties: {} } }];
  const response = await gateway.post('/messages/count_tokens', { ...conversation, model: 'test/gemini', tools });
  assert.deepEqual(await response.json(), { input_tokens: 31 });
  const { path, json } = gateway.upstream.requests('gemini').at(-1)!;
  assert.equal(path, '/models/upstream-gemini:countTokens');
  const asked = (json as { generateContentRequest: Record<string, unknown> }).generateContentRequest;
  assert.equal(asked['model'], 'models/upstream-gemini');
  assert.deepEqual(asked['contents'], [{ role: 'user', parts: [{ text: 'hello world' }] }]);
  assert.deepEqual(asked['systemInstruction'], { parts: [{ text: 'be brief' }] });
  assert.match(JSON.stringify(asked['tools']), /"name":"look"/);
  assert.equal('generationConfig' in asked, false);
});
