/** What a full vector store costs: 20,000 chunks with vectors of 1,536 dimensions, added and searched through the API. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as jsonOf } from 'node:stream/consumers';
import { test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { cosines, packVectors, unitOf } from '../../src/vector-stores/vectors.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const FILES = 20;
const CHUNKS_OF_A_FILE = 1_000;
const DIMENSIONS = 1_536;
const WORDS = 5_000;
const WORDS_OF_A_CHUNK = 79;
const SEARCHES = 30;

let state = 1;
/** From 0 to 1, the same in every run. */
function random(): number {
  state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
  return state / 2_147_483_648;
}

const vector = () => Array.from({ length: DIMENSIONS }, () => Math.round((random() * 2 - 1) * 1000) / 1000);
const wordAt = (at: number) => `w${String(at).padStart(3, '0')}`.slice(-4);
const median = (values: number[]) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;

async function times(work: () => Promise<unknown>): Promise<number[]> {
  const taken: number[] = [];
  for (let round = 0; round < SEARCHES; round++) {
    const before = performance.now();
    await work();
    taken.push(performance.now() - before);
  }
  return taken;
}

test('a full store', async (t) => {
  const service = createServer(async (request, response) => {
    const { input } = (await jsonOf(request)) as Json;
    const data = [input]
      .flat()
      .map((_: string, index: number) => ({ object: 'embedding', index, embedding: vector() }));
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ object: 'list', data, model: 'v', usage: { prompt_tokens: 1, total_tokens: 1 } }));
  });
  await new Promise<void>((done) => service.listen(0, '127.0.0.1', done));
  t.after(() => service.close());
  const gateway = await startGateway(t, {
    providers: {
      vectors: {
        kind: 'openai',
        base_url: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
        model: { output_modalities: ['embeddings'], pricing: { prompt: '0', completion: '0' } },
      },
    },
    yaml: { vector_stores: { embedding_model: 'test/vectors' } },
  });
  const client = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api });
  const chunking_strategy = {
    type: 'static',
    static: { max_chunk_size_tokens: 100, chunk_overlap_tokens: 0 },
  } as const;
  const store = await client.vectorStores.create({ name: 'full' });
  const startedAt = performance.now();
  for (let file = 0; file < FILES; file++) {
    const chunks = Array.from({ length: CHUNKS_OF_A_FILE }, () =>
      Array.from({ length: WORDS_OF_A_CHUNK + 1 }, () => `${wordAt(Math.floor(random() * WORDS))} `).join(''),
    );
    const content = await toFile(Buffer.from(chunks.join('')), `file-${file}.txt`);
    const { id } = await client.files.create({ file: content, purpose: 'assistants' });
    await client.vectorStores.files.create(store.id, { file_id: id, chunking_strategy });
  }
  await until(
    async () => (await client.vectorStores.retrieve(store.id)).file_counts.completed === FILES,
    'the files are added',
    600_000,
  );
  t.diagnostic(`added in ${Math.round(performance.now() - startedAt)} ms`);
  const { usage_bytes: bytes } = await client.vectorStores.retrieve(store.id);
  t.diagnostic(`${Math.round(bytes / 1024 / 1024)} MiB of texts and vectors`);

  const search = (query: string, weights?: { embedding_weight: number; text_weight: number }) =>
    client.vectorStores.search(store.id, {
      query,
      ...(weights && { ranking_options: { hybrid_search: weights } as Json }),
    });
  const rare = `${wordAt(17)} ${wordAt(18)}`;
  const before = performance.now();
  const found = await search(rare);
  t.diagnostic(`first search ${Math.round(performance.now() - before)} ms`);
  assert.equal(found.data.length, 10);
  for (const [what, query] of [
    ['two words', rare],
    ['twenty words', Array.from({ length: 20 }, (_, at) => wordAt(at)).join(' ')],
  ] as const) {
    const taken = await times(() => search(query));
    t.diagnostic(`${what}: median ${median(taken).toFixed(1)} ms, slowest ${Math.max(...taken).toFixed(1)} ms`);
  }
  const beside = await Promise.all(Array.from({ length: 4 }, async () => median(await times(() => search(rare)))));
  t.diagnostic(`four clients at once: median ${median(beside).toFixed(1)} ms`);
});

test('what one byte per dimension loses', (t) => {
  const all = Array.from({ length: 5_000 }, () => Float32Array.from(vector()));
  const packed = packVectors(all);
  let kept = 0;
  let comparing = 0;
  const rounds = 20;
  for (let round = 0; round < rounds; round++) {
    const unit = unitOf(Float32Array.from(vector()));
    const exact = all.map((each) => unitOf(each).reduce((sum, value, at) => sum + value * unit[at]!, 0));
    const before = performance.now();
    const rounded = cosines(packed, unit);
    comparing += performance.now() - before;
    const best = (scores: ArrayLike<number>) =>
      Array.from(scores, (score, at) => ({ score, at }))
        .sort((one, other) => other.score - one.score)
        .slice(0, 10)
        .map(({ at }) => at);
    const wanted = new Set(best(exact));
    kept += best(rounded).filter((at) => wanted.has(at)).length;
  }
  t.diagnostic(`recall of the ten best: ${((kept * 100) / (rounds * 10)).toFixed(1)} percent`);
  t.diagnostic(`comparing 20,000 vectors: ${((comparing / rounds) * 4).toFixed(1)} ms`);
  assert.ok(kept > rounds * 9);
});
