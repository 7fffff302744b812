/** `@openrouter/sdk`, unmodified: what was asked and answered, feedback, and answers from the response cache. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { type Json, thrownBy } from '../../src/testing/gateway/sdk.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    env: { GATEHOUSE_NAMESPACE: 'openrouter' },
    providers: { chat: {} },
    yaml: { io_logging: { enabled: true } },
  },
);
const client = (apiKey: string) =>
  new OpenRouter({ apiKey, serverURL: gateway.api, retryConfig: { strategy: 'none' } });
const [user, manager] = [client(INFERENCE_KEY), client(MANAGEMENT_KEY)];

const chatRequest = { model: 'test/chat', messages: [{ role: 'user' as const, content: 'hi' }] };
const CACHE = { headers: { 'X-OpenRouter-Cache': 'true', 'X-OpenRouter-Cache-TTL': '60' } };

test('the content of a generation, and feedback on it', async () => {
  gateway.upstream.script('chat', [answerOf('chat', false, { text: 'hello', thinking: { text: 'hm' } })]);
  const { id } = (await user.chat.send({ chatRequest: { ...chatRequest, stream: false } })) as Json;
  for (const sdk of [user, manager]) {
    const { data } = await sdk.generations.listGenerationContent({ id });
    assert.deepEqual(data.input, { messages: chatRequest.messages });
    assert.deepEqual({ ...data.output }, { completion: 'hello', reasoning: 'hm' });
    assert.equal(data.error, null);
  }
  const given = await manager.generations.submitFeedback({
    submitGenerationFeedbackRequest: { generationId: id, category: 'incoherence', comment: 'why hello' },
  });
  assert.equal(given.data.success, true);
  const error = await thrownBy(() => user.generations.listGenerationContent({ id: 'gen-none' }));
  assert.equal(error.statusCode, 404);
});

test('the content of a failed generation names the failure', async () => {
  gateway.upstream.script('chat', [{ status: 500, chunks: ['{"error":{"message":"it broke"}}'] }]);
  const error = await thrownBy(() => user.chat.send({ chatRequest: { ...chatRequest, stream: false } }));
  const id = error.headers.get('x-generation-id');
  const { data } = await manager.generations.listGenerationContent({ id });
  assert.equal(data.error?.providerName, 'Provider chat');
  assert.equal(data.error?.status, 502);
  assert.deepEqual(data.error?.previousErrors, []);
});

test('an answer from the cache, whole and streamed, and its row', async () => {
  gateway.upstream.script('chat', [
    answerOf('chat', false, { text: 'kept' }),
    answerOf('chat', true, { text: 'kept' }),
  ]);
  const before = gateway.upstream.requests('chat').length;
  const whole = () => user.chat.send({ chatRequest: { ...chatRequest, stream: false } }, CACHE) as Promise<Json>;
  const [made, given] = [await whole(), await whole()];
  assert.equal(given.choices[0].message.content, 'kept');
  assert.deepEqual([given.usage.totalTokens, given.usage.cost], [0, 0]);
  const { data } = await user.generations.getGeneration({ id: given.id });
  assert.deepEqual([data.responseCacheSourceId, data.totalCost], [made.id, 0]);

  const texts: string[] = [];
  for (let turn = 0; turn < 2; turn += 1) {
    const stream: Json = await user.chat.send({ chatRequest: { ...chatRequest, stream: true } }, CACHE);
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    texts.push(text);
  }
  assert.deepEqual(texts, ['kept', 'kept']);
  assert.equal(gateway.upstream.requests('chat').length, before + 2);
});
