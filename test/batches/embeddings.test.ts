/** Batches of embeddings. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';
import { batchesOf, type Json } from './batches-client.ts';

test('embeddings run as a batch, with usage of input tokens only', async (t) => {
  const other = await startGateway(t, {
    providers: {
      vectors: { kind: 'openai', batches: false, model: { output_modalities: ['embeddings'] } },
    },
  });
  const data = [{ object: 'embedding', index: 0, embedding: [0.25, 0.5] }];
  const reply = { object: 'list', data, model: 'm', usage: { prompt_tokens: 4, total_tokens: 4 } };
  other.upstream.script('vectors', { ...wholeOf(reply), repeat: true });
  const client = batchesOf(other);
  const of = (body: object) => ({
    endpoint: '/v1/embeddings',
    model: 'test/vectors',
    requests: [
      { custom_id: 'a', body },
      { custom_id: 'b', body: { input: ['x'] } },
    ],
  });
  await client.refused(
    client.send('POST', '/batches', of({ input: 'x', input_type: 'query' })),
    400,
    /input_type is not/,
  );
  await client.refused(
    client.send('POST', '/batches', of({ input: 'x', provider: {} })),
    400,
    /provider must be given/,
  );
  const batch = await client.ended((await client.submitted(of({ input: 'x' }))).id);
  assert.deepEqual(
    batch.results.map(({ response }: Json) => response.body.data[0].embedding),
    [data[0]!.embedding, data[0]!.embedding],
  );
  assert.deepEqual([batch.usage.prompt_tokens, batch.usage.completion_tokens], [8, 0]);
});
