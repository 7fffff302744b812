import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readDocument } from '../../base/json.ts';
import type { CallPlan, DirectTarget, Reply } from '../direct/index.ts';
import {
  bedrockEmbedding,
  cohereEmbedding,
  type EmbeddingAdapter,
  embedding,
  geminiEmbedding,
  openaiEmbedding,
  vertexEmbedding,
} from './index.ts';
import type { EmbeddingAnswer } from './reply.ts';
import { scanReply } from './scan-reply.ts';
import { vectorJson } from './vectors.ts';

const target = (model: string): DirectTarget => ({
  model,
  user: 'u',
  stream: false,
  contextLength: null,
  providerId: 'p',
  stamp: { id: 'gen-1', model: 'a/b', provider: 'P', created: 7, usage: 'none' },
  baseUrl: 'http://upstream',
});

function start(adapter: EmbeddingAdapter, model: string, body: Record<string, unknown>): CallPlan<EmbeddingAnswer> {
  const document = readDocument(Buffer.from(JSON.stringify({ model: 'a/b', ...body })));
  embedding.check(document);
  return adapter.start(embedding.decode(document), target(model));
}

const replyOf = (value: unknown, headers: Record<string, string> = {}): Reply => ({
  status: 200,
  headers,
  body: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)),
});

const sent = ({ call }: CallPlan<EmbeddingAnswer>): unknown => JSON.parse(call.body.toString());

test('Vertex embeds by predict, with Google’s names, and counts tokens per input', () => {
  const body = { input: ['a', 'b'], dimensions: 256, input_type: 'query' };
  const plan = start(vertexEmbedding, 'google/text-embedding-005', body);
  assert.equal(plan.call.path, '/publishers/google/models/text-embedding-005:predict');
  assert.deepEqual(sent(plan), {
    instances: [
      { content: 'a', task_type: 'RETRIEVAL_QUERY' },
      { content: 'b', task_type: 'RETRIEVAL_QUERY' },
    ],
    parameters: { autoTruncate: false, outputDimensionality: 256 },
  });
  const prediction = (values: number[], token_count: number) => ({
    embeddings: { values, statistics: { token_count, truncated: false } },
  });
  const step = plan.read(replyOf({ predictions: [prediction([1, 2], 5), prediction([3, 4], 6)] }));
  assert.ok('answer' in step);
  assert.deepEqual(step.answer.vectors, [
    [1, 2],
    [3, 4],
  ]);
  assert.equal(step.usage?.input, 11);
});

test('models with one input per call are called once per input', () => {
  let plan = start(bedrockEmbedding, 'amazon.titan-embed-text-v2:0', { input: ['a', 'b', 'c'], dimensions: 512 });
  const texts: unknown[] = [];
  for (let round = 1; ; round += 1) {
    assert.equal(plan.call.path, '/model/amazon.titan-embed-text-v2%3A0/invoke');
    texts.push(sent(plan));
    const step = plan.read(replyOf({ embedding: [round], inputTextTokenCount: round }));
    if ('next' in step) {
      assert.equal(step.usage?.input, round);
      plan = step.next;
      continue;
    }
    assert.ok('answer' in step);
    assert.deepEqual(step.answer.vectors, [[1], [2], [3]]);
    break;
  }
  assert.deepEqual(texts, [
    { inputText: 'a', dimensions: 512 },
    { inputText: 'b', dimensions: 512 },
    { inputText: 'c', dimensions: 512 },
  ]);
});

test('Cohere on Bedrock has no model in the body and its token count in a header', () => {
  const plan = start(bedrockEmbedding, 'cohere.embed-english-v3', { input: 'a' });
  assert.deepEqual(sent(plan), { texts: ['a'], input_type: 'search_document', embedding_types: ['float'] });
  const headers = { 'x-amzn-bedrock-input-token-count': '4' };
  const step = plan.read(replyOf({ id: 'x', embeddings: { float: [[1, 2]] } }, headers));
  assert.ok('answer' in step);
  assert.equal(step.usage?.input, 4);
  assert.throws(
    () => start(bedrockEmbedding, 'cohere.embed-english-v3', { input: 'a', dimensions: 256 }),
    /dimensions/,
  );
  assert.throws(() => start(bedrockEmbedding, 'cohere.embed-english-v3', { input: [1, 2] }), /token ids/);
});

const vector = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 5 });

test('scanning a reply finds the same vectors as parsing it', () => {
  fc.assert(
    fc.property(
      fc.array(vector, { minLength: 1, maxLength: 4 }),
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.constantFrom(undefined, 1, '\t'),
      (vectors, around, within, space) => {
        const { embedding: _embedding, index: _index, object: _object, ...more } = within;
        const { data: _data, ...rest } = around;
        const data = vectors.map((embedding, index) => ({ ...more, object: 'embedding', embedding, index }));
        const text = JSON.stringify({ ...rest, data, usage: { total_tokens: 1 } }, null, space);
        const body = Buffer.from(text);
        const scanned = scanReply(body);
        // The scan may decline, which falls back to parsing, but must never be wrong.
        if (scanned === undefined) return;
        assert.deepEqual(
          scanned.vectors.map(({ start: from, end }) => JSON.parse(body.toString('utf8', from, end))),
          JSON.parse(text).data.map((item: { embedding: number[] }) => item.embedding),
        );
      },
    ),
  );
});

test('a truncated reply is a failure', () => {
  const data = [0, 1].map((index) => ({ object: 'embedding', index, embedding: [0.5, -1e-3] }));
  const whole = JSON.stringify({ object: 'list', data, model: 'm', usage: { prompt_tokens: 1, total_tokens: 1 } });
  for (let length = 0; length < whole.length; length += 1) {
    const step = start(openaiEmbedding(), 'm', { input: ['a', 'b'] }).read(replyOf(whole.slice(0, length)));
    assert.ok('failure' in step, whole.slice(0, length));
  }
});

test('vectors are read in whatever type the service returned', () => {
  const vectors = (adapter: EmbeddingAdapter, model: string, reply: unknown): unknown => {
    const step = start(adapter, model, { input: 'a' }).read(replyOf(reply));
    assert.ok('answer' in step, JSON.stringify(step));
    return step.answer.vectors;
  };
  assert.deepEqual(vectors(geminiEmbedding, 'm', { embedding: { values: [1, 2] } }), [[1, 2]]);
  const predicted = { predictions: [{ embeddings: { values: [3], statistics: { token_count: 1 } } }] };
  assert.deepEqual(vectors(geminiEmbedding, 'm', predicted), [[3]]);
  assert.deepEqual(vectors(cohereEmbedding(), 'm', { embeddings: { int8: [[-5, 6]] } }), [[-5, 6]]);
});

test('base64 that is not float32 reaches the client unchanged', () => {
  // 0xffffffff is NaN as float32, and three bytes are too few for one.
  for (const own of ['/////w==', 'AAEC']) {
    const plan = start(openaiEmbedding(), 'm', { input: 'a' });
    const step = plan.read(replyOf({ data: [{ index: 0, embedding: own }] }));
    assert.ok('answer' in step);
    assert.equal(vectorJson(step.answer.vectors[0]!, 'float').toString(), JSON.stringify(own));
  }
});
