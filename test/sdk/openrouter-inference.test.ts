/** Inference operations of the openrouter library that no other test calls: responses, streamed images, lists. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, streamOf } from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of the library, whole or streamed
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      claude: { kind: 'messages' },
      gpt: { kind: 'openai', model: { upstream_id: 'gpt-image-1.5', output_modalities: ['image'] } },
      vectors: { kind: 'openai', model: { output_modalities: ['embeddings'] } },
    },
  },
);
const client = new OpenRouter({ serverURL: gateway.api, apiKey: INFERENCE_KEY });

for (const operation of ['responses', 'beta.responses'] as const) {
  const responses: Json = operation === 'responses' ? client.responses : client.beta.responses;
  const asked = { model: 'test/claude', input: 'Say hello', maxOutputTokens: 100 };

  test(`${operation}.send reads a whole response of a service of another format`, async () => {
    gateway.upstream.script('claude', answerOf('messages', false, { text: 'Hello', usage: { input: 7, output: 3 } }));
    const answer = await responses.send({ responsesRequest: { ...asked, stream: false } });
    assert.equal(answer.output[0].content[0].text, 'Hello');
    assert.equal(answer.status, 'completed');
    assert.deepEqual([answer.usage.inputTokens, answer.usage.outputTokens], [7, 3]);
  });

  test(`${operation}.send reads every event of a streamed one`, async () => {
    gateway.upstream.script(
      'claude',
      answerOf('messages', true, { text: 'Hello you', usage: { input: 7, output: 3 } }),
    );
    const stream = await responses.send({ responsesRequest: { ...asked, stream: true } });
    const types: string[] = [];
    let text = '';
    for await (const event of stream as AsyncIterable<Json>) {
      types.push(event.type);
      if (event.type === 'response.output_text.delta') text += event.delta;
    }
    assert.equal(text, 'Hello you');
    assert.deepEqual([types[0], types.at(-1)], ['response.created', 'response.completed']);
  });
}

test('images.generate reads partial images and the last one with its usage', async () => {
  const usage = { input_tokens: 1, output_tokens: 2 };
  const events = [
    { type: 'image_generation.partial_image', b64_json: 'AAAA', partial_image_index: 0 },
    { type: 'image_generation.completed', b64_json: 'BBBB', created_at: 1_750_000_000, usage },
  ];
  gateway.upstream.script(
    'gpt',
    streamOf(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)),
  );
  const stream: Json = await client.images.generate({
    imageGenerationRequest: { model: 'test/gpt', prompt: 'Earth', stream: true },
  });
  const seen: Json[] = [];
  for await (const event of stream) seen.push(event.data ?? event);
  assert.deepEqual(
    seen.map(({ type, b64Json }) => [type, b64Json]),
    [
      ['image_generation.partial_image', 'AAAA'],
      ['image_generation.completed', 'BBBB'],
    ],
  );
  assert.equal(seen[1].usage.totalTokens, 3);
});

test('embeddings.listModels lists what makes vectors, and nothing else', async () => {
  const ids: string[] = [];
  for await (const page of await client.embeddings.listModels()) {
    for (const { id } of (page as Json).result.data) ids.push(id);
  }
  assert.deepEqual(ids, ['test/vectors']);
});
