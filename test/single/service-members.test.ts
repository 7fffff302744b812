/** Members that only the service of an embedding or a ranking knows reach it, and lists of images have its limit too. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';

const vectors = {
  output_modalities: ['embeddings'],
  supported_parameters: [],
  pricing: { prompt: '0', completion: '0' },
};
const ranks = { ...vectors, output_modalities: ['rerank'] };
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      cohere: { kind: 'cohere', model: vectors },
      voyage: { kind: 'voyage', model: vectors },
      ranker: { kind: 'cohere', model: ranks },
      sorter: { kind: 'voyage', model: ranks },
    },
  },
);

const answer = (value: unknown) => ({
  headers: { 'content-type': 'application/json' },
  chunks: [JSON.stringify(value)],
});

async function sent(name: string, route: string, body: Record<string, unknown>, ...replies: unknown[]) {
  gateway.upstream.script(name, replies.map(answer));
  const before = gateway.upstream.requests(name).length;
  const response = await gateway.post(route, { model: `test/${name}`, ...body });
  assert.equal(response.status, 200, await response.clone().text());
  return {
    calls: gateway.upstream
      .requests(name)
      .slice(before)
      .map(({ json }) => json as Record<string, unknown>),
    reply: (await response.json()) as { data: { embedding: number[] }[] },
  };
}

test('Cohere truncates as the request says', async () => {
  const reply = { embeddings: { float: [[1, 2]] }, meta: { billed_units: { input_tokens: 2 } } };
  const { calls } = await sent('cohere', '/embeddings', { input: 'a', truncate: 'NONE' }, reply);
  assert.equal(calls[0]!['truncate'], 'NONE');
});

test('Voyage gets at most 1,000 images in a call, and the truncation that the client wants', async () => {
  const image = { content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] };
  const replyOf = (count: number) => ({
    data: Array.from({ length: count }, (_, index) => ({ object: 'embedding', index, embedding: [count, index] })),
    usage: { total_tokens: 3 },
  });
  const input = Array.from({ length: 1001 }, () => image);
  const { calls, reply } = await sent('voyage', '/embeddings', { input, truncation: false }, replyOf(1000), replyOf(1));
  assert.deepEqual(
    calls.map(({ inputs, truncation }) => [(inputs as unknown[]).length, truncation]),
    [
      [1000, false],
      [1, false],
    ],
  );
  assert.deepEqual([reply.data.length, reply.data.at(-1)!.embedding], [1001, [1, 0]]);
});

test('services that rank get the limits of the request, and no members that they do not know', async () => {
  const others = { return_documents: false, max_tokens_per_doc: 100, truncation: false };
  const reply = { results: [{ index: 0, relevance_score: 0.5 }] };
  const ranked = await sent('ranker', '/rerank', { query: 'q', documents: ['a'], ...others }, reply);
  assert.deepEqual(Object.keys(ranked.calls[0]!).toSorted(), [
    'documents',
    'max_tokens_per_doc',
    'model',
    'query',
    'top_n',
  ]);
  const sorted = await sent('sorter', '/rerank', { query: 'q', documents: ['a'], ...others }, reply);
  assert.deepEqual(Object.keys(sorted.calls[0]!).toSorted(), ['documents', 'model', 'query', 'top_k', 'truncation']);
});
