/**
 * Kill -9 while files are added to a vector store, and a start after it. The service of vectors is a server of the test: it counts
 * how often it is asked for each text, and can hold its answers back.
 */
import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as jsonOf } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { until } from '../../src/testing/clock/clock.ts';
import { connect, embeddedTarget } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import { startGatewayProcess } from '../../src/testing/process/gateway-process.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

/** Texts of one request for vectors. */
const AT_ONCE = 96;
/** Requests for the vectors of a file. */
const REQUESTS = 3;
const PATIENCE_MS = 60_000;

const nameOf = (index: number) => String(index).padStart(4, 'n');

class Vectors {
  /** First texts of the requests, in their order. */
  readonly asked: string[] = [];
  /** Number of the first request that is not answered; the later ones are not either. */
  holdsFrom = Number.POSITIVE_INFINITY;
  readonly #server = createServer(async (request, response) => {
    const { input } = (await jsonOf(request)) as Json;
    this.asked.push(input[0]);
    if (this.asked.length < this.holdsFrom) answer(response, input);
  });

  async listen(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

function answer(response: ServerResponse, input: readonly string[]): void {
  const data = input.map((text, index) => ({ object: 'embedding', index, embedding: [text.length % 7, 1, 2] }));
  const usage = { prompt_tokens: input.length, total_tokens: input.length };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ object: 'list', data, model: 'v', usage }));
}

function yamlFor(url: string) {
  const models = [
    {
      id: 'test/vectors',
      upstream_id: 'v',
      context_length: 200_000,
      output_modalities: ['embeddings'],
      pricing: { prompt: '0.001', completion: '0' },
    },
  ];
  return {
    providers: [{ id: 'vectors', name: 'Vectors', kind: 'openai', base_url: url, api_key: UPSTREAM_KEY, models }],
    vector_stores: { embedding_model: 'test/vectors' },
  };
}

/**
 * Adds a file whose vectors take three requests, and kills the gateway when the service has got one of them.
 * @param nth the request that is not answered, from 1
 */
export async function killRound(test: TestContext, nth: number): Promise<void> {
  const vectors = new Vectors();
  test.after(() => vectors.close());
  vectors.holdsFrom = nth;
  const first = await startGatewayProcess(test, { yaml: yamlFor(await vectors.listen()) });
  const client = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: first.api, maxRetries: 0 });
  // Each is one chunk.
  const words = Array.from({ length: AT_ONCE * REQUESTS }, (_, index) => `${nameOf(index)} ${'word '.repeat(79)}`);
  const file = await toFile(Buffer.from(words.join('')), 'numbers.txt');
  const { id: fileId } = await client.files.create({ file, purpose: 'assistants' });
  const chunking_strategy = {
    type: 'static',
    static: { max_chunk_size_tokens: 100, chunk_overlap_tokens: 0 },
  } as const;
  const store = await client.vectorStores.create({ file_ids: [fileId], chunking_strategy });
  await until(() => vectors.asked.length >= nth, 'the vectors are asked for', PATIENCE_MS);
  first.signal('SIGKILL');
  await first.exit;

  vectors.holdsFrom = Number.POSITIVE_INFINITY;
  const second = await startGatewayProcess(test, { home: first.home });
  const again = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: second.api, maxRetries: 0 });
  const added = await until(
    async () => {
      const found = await again.vectorStores.files.retrieve(fileId, { vector_store_id: store.id });
      return found.status === 'in_progress' ? undefined : found;
    },
    'the file is added',
    PATIENCE_MS,
  );
  assert.equal(added.status, 'completed', JSON.stringify(added));
  const counts = (await again.vectorStores.retrieve(store.id)).file_counts;
  assert.deepEqual([counts.total, counts.completed], [1, 1]);
  const asked = new Map<string, number>();
  for (const text of vectors.asked) asked.set(text, (asked.get(text) ?? 0) + 1);
  assert.equal(asked.size, REQUESTS, JSON.stringify([...asked.values()]));
  assert.deepEqual(
    [...asked.values()],
    Array.from({ length: REQUESTS }, (_, index) => (index === nth - 1 ? 2 : 1)),
    'only the request that was not answered is made again',
  );

  const sql = await connect(embeddedTarget(first.home));
  try {
    const { rows } = await sql.query('select position from vector_store_chunks order by position');
    assert.equal(rows.length, AT_ONCE * REQUESTS);
    assert.deepEqual(
      rows.map(({ position }) => position),
      Array.from(rows, (_, index) => index),
    );
    const left = await sql.query('select count(*)::int as count from vector_store_pieces');
    assert.equal(left.rows[0].count, 0);
    const charged = await until(async () => {
      const found = await sql.query("select input_tokens::int as tokens from generations where model = 'test/vectors'");
      return found.rows.length > REQUESTS ? found.rows : undefined;
    }, 'every request has a row');
    // The one that was cut off has a row too, with what it may have cost.
    assert.equal(charged.length, REQUESTS + 1);
    assert.equal(charged.filter(({ tokens }) => tokens === AT_ONCE).length >= REQUESTS, true);
  } finally {
    await sql.end();
  }
  const { data } = await again.vectorStores.search(store.id, { query: nameOf(7) });
  assert.match(data[0]!.content[0]!.text, /^nnn7 /);
}
