/**
 * A prompt that does not fit reaches every client in the words by which it finds that and compacts its history, whatever
 * the upstream's: musistudio/claude-code-router#1799.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { FormatId } from '../../src/formats/conversation/registry.ts';
import { SPOKEN_FORMATS } from '../../src/formats/index.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { streamOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: Object.fromEntries(SPOKEN_FORMATS.map((kind) => [kind, { kind }])) },
);

const OPENAI = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
const refused = (error: unknown, status = 400): Answer => wholeOf(error, { status });

/** As each format's services refuse it. */
const REFUSALS: Record<FormatId, Answer> = {
  chat: refused({ error: { message: OPENAI, type: 'invalid_request_error', code: 'context_length_exceeded' } }),
  messages: refused({
    type: 'error',
    error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
  }),
  responses: refused({ error: { message: 'Your input exceeds the context window of this model.', code: null } }),
  gemini: refused({
    error: {
      code: 400,
      status: 'INVALID_ARGUMENT',
      message: 'The input token count (9) exceeds the maximum number of tokens allowed (8).',
    },
  }),
  converse: refused({ message: 'Input is too long for requested model.', __type: 'ValidationException' }),
  cohere: refused({ message: 'too many tokens: size limit exceeded by 25836 tokens.' }),
};

const MESSAGES = [{ role: 'user', content: 'hi' }];
const BODIES = {
  '/chat/completions': { messages: MESSAGES },
  '/messages': { messages: MESSAGES, max_tokens: 100 },
  '/responses': { input: 'hi' },
};
type Route = keyof typeof BODIES;
const ROUTES = Object.keys(BODIES) as Route[];

/** Asserts the words of the format on a text that holds the error, whole or as an event. */
function assertWords(route: Route, text: string, about: string): void {
  const events = text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [line.slice(6)] : []));
  // biome-ignore lint/suspicious/noExplicitAny: errors of three formats
  const body: any = JSON.parse(events.at(-1) ?? text);
  switch (route) {
    case '/messages':
      assert.equal(body.error.type, 'invalid_request_error', about);
      assert.match(body.error.message, /prompt is too long/, about);
      break;
    case '/chat/completions':
      assert.equal(body.error.code, 400, about);
      assert.equal(body.error.metadata.error_type, 'context_length_exceeded', about);
      assert.match(body.error.message, /maximum context length|context_length_exceeded/, about);
      break;
    case '/responses':
      assert.equal(body.error_type ?? body.response.error_type, 'context_length_exceeded', about);
      assert.match(JSON.stringify(body), /maximum context length|context_length_exceeded/, about);
  }
}

test('a prompt that an upstream refuses as too long is 400 in the words of the client’s format', async () => {
  for (const kind of SPOKEN_FORMATS) {
    for (const route of ROUTES) {
      for (const stream of [false, true]) {
        gateway.upstream.script(kind, [REFUSALS[kind]]);
        const reply = await gateway.post(route, { model: `test/${kind}`, stream, ...BODIES[route] });
        assert.equal(reply.status, 400, `${kind} ${route}`);
        assertWords(route, await reply.text(), `${kind} ${route}`);
      }
    }
  }
});

test('one that is refused inside of a stream is 400 as well, by its code or its words', async () => {
  const inBand: Record<string, Answer> = {
    chat: streamOf([
      `data: ${JSON.stringify({ error: { message: 'It does not fit.', code: 'context_length_exceeded' } })}\n\n`,
    ]),
    messages: streamOf([
      `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'api_error', message: OPENAI } })}\n\n`,
    ]),
    responses: streamOf([
      `event: response.failed\ndata: ${JSON.stringify({
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'context_length_exceeded', message: 'It does not fit.' } },
      })}\n\n`,
    ]),
    gemini: streamOf([
      `data: ${JSON.stringify({ error: { code: 400, status: 'INVALID_ARGUMENT', message: OPENAI } })}\r\n\r\n`,
    ]),
  };
  for (const [kind, answer] of Object.entries(inBand)) {
    for (const route of ROUTES) {
      gateway.upstream.script(kind, [answer]);
      const reply = await gateway.post(route, { model: `test/${kind}`, stream: true, ...BODIES[route] });
      assert.equal(reply.status, 400, `${kind} ${route}`);
      assertWords(route, await reply.text(), `${kind} ${route}`);
    }
  }
});

test('a prompt that no endpoint has the context for is refused in the same words', async () => {
  const asked = gateway.upstream.requests().length;
  const content = 'x '.repeat(1_200_000);
  const bodies = {
    '/chat/completions': { messages: [{ role: 'user', content }] },
    '/messages': { messages: [{ role: 'user', content }], max_tokens: 100 },
    '/responses': { input: content },
  };
  for (const route of ROUTES) {
    const reply = await gateway.post(route, { model: 'test/chat', ...bodies[route] });
    const text = await reply.text();
    assert.equal(reply.status, 400, text);
    assertWords(route, text, route);
    if (route === '/messages') assert.match(text, /prompt is too long: 6\d{5} tokens > 200000 maximum/);
  }
  assert.equal(gateway.upstream.requests().length, asked);
});

test('output that does not fit after a prompt that does fit gets the error message that makes clients ask for less', async () => {
  const message =
    "'max_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 1000 input tokens";
  gateway.upstream.script('chat', [refused({ error: { message, type: 'BadRequestError', code: 400 } })]);
  const reply = await gateway.post('/messages', { model: 'test/chat', ...BODIES['/messages'] });
  const { error } = (await reply.json()) as { error: { message: string } };
  assert.match(error.message, /^input length and `max_tokens` exceed context limit: 1000 \+ 32000 > 32768/);
});
