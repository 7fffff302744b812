/** Details of the messages format that Anthropic's SDKs and the programs built on them read. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: {}, messages: { kind: 'messages' } } },
);
const client = (apiKey = INFERENCE_KEY) =>
  new Anthropic({ baseURL: gateway.url, apiKey, authToken: null, maxRetries: 0 });
const body = (name: string) => ({
  model: `test/${name}`,
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'x'.repeat(4_000) }],
});

test('every answer has a request id where the SDK looks for it, errors and token counts too', async () => {
  for (const name of ['chat', 'messages'] as const) {
    gateway.upstream.script(name, [answerOf(name, false, { text: 'ok' }), answerOf(name, true, { text: 'ok' })]);
    const message = await client().messages.create(body(name));
    assert.equal(message._request_id, message.id);
    const { request_id, data } = await client()
      .messages.create({ ...body(name), stream: true })
      .withResponse();
    assert.match(request_id ?? '', /^gen-/);
    for await (const _event of data);
    const count = await client().messages.countTokens({ model: 'test/chat', messages: body(name).messages });
    assert.ok(count._request_id);
  }
  for (const [apiKey, more] of [
    ['wrong', {}],
    [INFERENCE_KEY, { model: 'test/none' }],
    [INFERENCE_KEY, { messages: [] }],
  ] as const) {
    const error = await client(apiKey)
      .messages.create({ ...body('chat'), ...more } as never)
      .then(
        () => undefined,
        (thrown) => thrown,
      );
    assert.ok(error instanceof Anthropic.APIError && error.requestID);
  }
});

test('a stream opens with a count of the prompt, and closes with the exact one', async () => {
  const usage = { input: 1_234, output: 5 };
  gateway.upstream.script('chat', [answerOf('chat', true, { text: 'ok', usage })]);
  const stream = client().messages.stream(body('chat'));
  const opening = new Promise<number>((resolve) => {
    stream.on('streamEvent', (event) => {
      if (event.type === 'message_start') resolve(event.message.usage.input_tokens);
    });
  });
  const message = await stream.finalMessage();
  const estimated = await opening;
  assert.ok(estimated > 500 && estimated < 2_500, String(estimated));
  assert.equal(message.usage.input_tokens, 1_234);
});
