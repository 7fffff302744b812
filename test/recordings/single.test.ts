/**
 * Recorded replies of embedding and ranking services through a whole gateway. What each must become is read here from the
 * recorded bytes, by code that shares nothing with `src/formats`.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { corpusMissing, type Recording, recordings } from '../../src/testing/recordings/corpus.ts';

/** Everything that some service's reply, or ours, may hold. */
interface Reply {
  data: Item[];
  results: Item[];
  embeddings: Item[] & { float: number[][] };
  usage: { prompt_tokens: number; total_tokens: number; search_units: number; cost: number };
  usageMetadata?: { promptTokenCount: number };
  meta?: { billed_units: { input_tokens: number; search_units: number } };
  error: { metadata: { provider_name: string } };
}

interface Item {
  index: number;
  embedding: number[] | string;
  values: number[];
  relevance_score?: number;
  relevanceScore?: number;
}

interface Expected {
  vectors: number[][];
  /** null: the service reports none. */
  tokens: number | null;
}

/** From the shapes of the vendors' own documentation. */
const READERS: Record<string, (reply: Reply) => Expected> = {
  public: (reply) => ({
    vectors: reply.data.map(({ embedding }) => embedding as number[]),
    tokens: reply.usage.prompt_tokens,
  }),
  cohere: (reply) => ({ vectors: reply.embeddings.float, tokens: reply.meta!.billed_units.input_tokens }),
  google: (reply) => ({
    vectors: reply.embeddings.map(({ values }) => values as number[]),
    tokens: reply.usageMetadata?.promptTokenCount ?? null,
  }),
  perplexity: (reply) => ({
    vectors: reply.data.map(({ embedding }) =>
      [...Buffer.from(embedding as string, 'base64')].map((byte) =>
        Math.max((byte > 127 ? byte - 256 : byte) / 127, -1),
      ),
    ),
    tokens: reply.usage.prompt_tokens,
  }),
};

const PLAYED: Record<string, { kind: string; reader: keyof typeof READERS }> = {
  azure: { kind: 'azure', reader: 'public' },
  cohere: { kind: 'cohere', reader: 'cohere' },
  google: { kind: 'google', reader: 'google' },
  mistral: { kind: 'mistral', reader: 'public' },
  openai: { kind: 'openai', reader: 'public' },
  perplexity: { kind: 'perplexity', reader: 'perplexity' },
};

/** Replies to questions that the gateway does not ask: int8 or base64 vectors, and the call for a single input. */
const NOT_ASKED = /int8-embedding-type|vllm\/|google\/embeddings-embed\.json/;

const embeddings = recordings(['embeddings']).filter(({ id, provider }) => provider in PLAYED && !NOT_ASKED.test(id));
const rankings = recordings(['rerank']);

const pricing = { prompt: '0.000001', completion: '0', request: '0.001' };
const model = (output: string) => ({ output_modalities: [output], pricing });
const gateway = corpusMissing
  ? undefined
  : await startGateway(
      { after: (close) => after(close as () => Promise<void>) },
      {
        providers: {
          ...Object.fromEntries(
            Object.entries(PLAYED).map(([name, { kind }]) => [name, { kind, model: model('embeddings') }]),
          ),
          ...Object.fromEntries(
            ['cohere', 'voyage', 'bedrock'].map((kind) => [`rank-${kind}`, { kind, model: model('rerank') }]),
          ),
        },
      },
    );

function play(key: string, { status, headers, bytes }: Recording, pieces?: number): void {
  const played = { 'content-type': 'application/json', ...headers };
  gateway!.upstream.script(key, [{ status, headers: played, chunks: [bytes], ...(pieces && { pieces }) }]);
}

async function post(route: string, body: unknown): Promise<{ status: number; body: Reply }> {
  gateway!.clock.jump(3_600_000);
  const response = await gateway!.post(route, body);
  return { status: response.status, body: (await response.json()) as Reply };
}

for (const recording of embeddings.filter(({ status }) => status === 200)) {
  test(`${recording.id}: every vector and figure arrives, as numbers and as base64`, async () => {
    const { provider } = recording;
    const { vectors, tokens } = READERS[PLAYED[provider]!.reader]!(JSON.parse(recording.text));
    const input = vectors.map((_, index) => `text ${index}`);
    for (const pieces of [undefined, 997]) {
      play(provider, recording, pieces);
      const { status, body } = await post('/embeddings', { model: `test/${provider}`, input });
      assert.equal(status, 200, JSON.stringify(body));
      assert.deepEqual(
        body.data.map(({ index, embedding }) => [index, embedding]),
        vectors.map((vector, index) => [index, vector]),
      );
      if (tokens !== null) assert.equal(body.usage.prompt_tokens, tokens);
      assert.ok(Math.abs(body.usage.cost - body.usage.prompt_tokens * 1e-6 - 0.001) < 1e-9);
    }
    play(provider, recording);
    const { body } = await post('/embeddings', { model: `test/${provider}`, input, encoding_format: 'base64' });
    body.data.forEach(({ embedding }, index) => {
      const bytes = Buffer.from(embedding as string, 'base64');
      const floats = vectors[index]!.map((_, place) => bytes.readFloatLE(place * 4));
      assert.equal(bytes.length, vectors[index]!.length * 4);
      assert.deepEqual(floats, vectors[index]!.map(Math.fround));
    });
  });
}

for (const recording of embeddings.filter(({ status }) => status !== 200)) {
  test(`${recording.id}: the refusal is reported as one`, async () => {
    play(recording.provider, recording);
    const { status, body } = await post('/embeddings', { model: `test/${recording.provider}`, input: 'a' });
    assert.ok(status >= 400, JSON.stringify(body));
    assert.equal(body.error.metadata.provider_name, `Provider ${recording.provider}`);
  });
}

for (const recording of rankings) {
  test(`${recording.id}: every score is at its document, the best first`, async () => {
    const key = `rank-${recording.provider}`;
    const reply = JSON.parse(recording.text) as Reply;
    const told = (reply.results ?? reply.data).map((item) => ({
      index: item.index,
      score: (item.relevance_score ?? item.relevanceScore)!,
    }));
    const documents = Array.from({ length: Math.max(...told.map(({ index }) => index)) + 1 }, (_, at) => `text ${at}`);
    play(key, recording);
    const { status, body } = await post('/rerank', { model: `test/${key}`, query: 'q', documents });
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(
      body.results,
      told
        .toSorted((a, b) => b.score - a.score)
        .map(({ index, score }) => ({ index, relevance_score: score, document: { text: `text ${index}` } })),
    );
    const units = reply.meta?.billed_units.search_units;
    if (units !== undefined) assert.equal(body.usage.search_units, units);
    const tokens = (reply.usage as Reply['usage'] | undefined)?.total_tokens;
    if (tokens !== undefined) assert.equal(body.usage.total_tokens, tokens);
  });
}

test('there are recordings of embeddings and rankings', { skip: corpusMissing }, () => {
  assert.ok(embeddings.length >= 8 && rankings.length >= 6, `${embeddings.length} and ${rankings.length}`);
});
