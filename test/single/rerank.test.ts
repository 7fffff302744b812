/** `POST /rerank` through a whole gateway: order, positions and usage with every provider. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

const model = {
  output_modalities: ['rerank'],
  supported_parameters: [],
  pricing: { prompt: '0.00000005', completion: '0', request: '0.002' },
};

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      cohere: { kind: 'cohere', model },
      spare: { kind: 'cohere', model: { ...model, id: 'test/cohere' } },
      voyage: { kind: 'voyage', model: { ...model, pricing: { prompt: '0.00000005', completion: '0' } } },
      jina: { kind: 'jina', model },
      together: { kind: 'together', model },
      openrouter: { kind: 'openrouter', model },
      bedrock: { kind: 'bedrock', model: { ...model, upstream_id: 'cohere.rerank-v3-5:0' } },
    },
  },
);

interface Answer {
  id: string;
  model: string;
  provider: string;
  results: { index: number; relevance_score: number; document: { text?: string; image?: string } }[];
  usage: { search_units?: number; total_tokens?: number; cost: number };
}

const json = { 'content-type': 'application/json' };
const documents = ['Carson City', { text: 'Washington' }, 'Rome'];
const cohere = (results: unknown, units: number | null = 1) =>
  JSON.stringify({ id: 'x', results, meta: units === null ? {} : { billed_units: { search_units: units } } });
const RANKED = [
  { index: 2, relevance_score: 0.1 },
  { index: 1, relevance_score: 0.98 },
  { index: 0, relevance_score: 0.5 },
];

function script(key: string, ...bodies: string[]): void {
  gateway.upstream.script(
    key,
    bodies.map((body) => ({ headers: json, chunks: [body] })),
  );
}

async function ask(body: Record<string, unknown>): Promise<Answer> {
  const response = await gateway.post('/rerank', { query: 'capital', documents, ...body });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text) as Answer;
}

async function rowOf(id: string): Promise<Record<string, unknown>> {
  const response = await gateway.get(`/generation?id=${id}`);
  return ((await response.json()) as { data: Record<string, unknown> }).data;
}

const sentTo = (key: string) => gateway.upstream.requests(key).at(-1)!;

test('95 | the most relevant document comes first, each with its index and text', async () => {
  script('cohere', cohere(RANKED));
  const answer = await ask({ model: 'test/cohere', top_n: 2 });
  assert.deepEqual(answer.results, [
    { index: 1, relevance_score: 0.98, document: { text: 'Washington' } },
    { index: 0, relevance_score: 0.5, document: { text: 'Carson City' } },
  ]);
  assert.equal(answer.model, 'test/cohere');
  assert.equal(answer.provider, 'Provider cohere');
  assert.equal(answer.usage.search_units, 1);
  assert.equal(answer.usage.cost, 0.002);
  assert.deepEqual(sentTo('cohere').json, {
    model: 'upstream-cohere',
    query: 'capital',
    documents: ['Carson City', 'Washington', 'Rome'],
    top_n: 2,
  });
  const row = await rowOf(answer.id);
  assert.deepEqual([row['api_type'], row['total_cost'], row['upstream_id']], ['rerank', 0.002, 'x']);
});

test('95 | without top_n all documents are ranked, and a larger one asks for no more than there are', async () => {
  script('cohere', cohere(RANKED), cohere(RANKED));
  assert.equal((await ask({ model: 'test/cohere' })).results.length, 3);
  assert.equal((await ask({ model: 'test/cohere', top_n: 50 })).results.length, 3);
  assert.equal((sentTo('cohere').json as { top_n: number }).top_n, 3);
});

test('95 | a ranking that names a document twice, or one that it was not given, is a failure of the upstream', async () => {
  const bad = [
    cohere([{ index: 3, relevance_score: 0.5 }]),
    cohere([{ index: -1, relevance_score: 0.5 }]),
    cohere([{ index: 0.5, relevance_score: 0.5 }]),
    cohere([
      { index: 1, relevance_score: 0.5 },
      { index: 1, relevance_score: 0.4 },
    ]),
    cohere([{ index: 1 }]),
    cohere([{ index: 1, relevance_score: 'high' }]),
    cohere([]),
    '{}',
    'nothing',
  ];
  for (const body of bad) {
    gateway.clock.jump(3_600_000);
    script('cohere', body);
    script('spare', cohere(RANKED));
    const answer = await ask({ model: 'test/cohere' });
    assert.equal(answer.provider, 'Provider spare', body);
    gateway.clock.jump(3_600_000);
    script('cohere', body);
    const response = await gateway.post('/rerank', {
      model: 'test/cohere',
      query: 'q',
      documents,
      provider: { only: ['cohere'] },
    });
    assert.equal(response.status, 502, body);
  }
});

test('several search units are charged as several, and what is not reported is estimated', async () => {
  gateway.clock.jump(3_600_000);
  script('cohere', cohere(RANKED, 3));
  assert.equal((await ask({ model: 'test/cohere' })).usage.cost, 0.006);
  script('cohere', cohere([{ index: 0, relevance_score: 1 }], null));
  const many = Array.from({ length: 150 }, () => 'text');
  const { usage } = await ask({ model: 'test/cohere', documents: many });
  assert.equal(usage.search_units, 2);
  assert.ok(usage.cost >= 0.004);
});

test('each service is asked in its own words, and charges by its own measure', async () => {
  script(
    'voyage',
    '{"object":"list","data":[{"relevance_score":0.57,"index":1},{"relevance_score":0.25,"index":0}],"usage":{"total_tokens":12}}',
  );
  const voyage = await ask({ model: 'test/voyage', top_n: 2 });
  assert.deepEqual([voyage.usage.total_tokens, voyage.usage.cost], [12, 6e-7]);
  assert.equal('search_units' in voyage.usage, false);
  assert.equal((sentTo('voyage').json as { top_k: number }).top_k, 2);
  script('together', '{"id":"t","results":[{"index":0,"relevance_score":0.9}],"usage":{"total_tokens":4}}');
  await ask({ model: 'test/together', top_n: 1 });
  assert.equal((sentTo('together').json as { return_documents: boolean }).return_documents, false);
  script('bedrock', '{"results":[{"index":0,"relevance_score":0.9}]}');
  await ask({ model: 'test/bedrock', top_n: 1 });
  assert.equal(sentTo('bedrock').path, '/model/cohere.rerank-v3-5%3A0/invoke');
  assert.deepEqual(sentTo('bedrock').json, {
    query: 'capital',
    documents: ['Carson City', 'Washington', 'Rome'],
    top_n: 1,
    api_version: 2,
  });
});

test('documents with images go to services that rank images', async () => {
  const image = 'data:image/png;base64,AAAA';
  const pictures = [{ image }, { text: 'a page' }, 'plain'];
  const results = '{"results":[{"index":0,"relevance_score":0.9}],"usage":{"total_tokens":4}}';
  script('jina', results);
  const { results: ranked } = await ask({ model: 'test/jina', documents: pictures });
  assert.deepEqual(ranked[0]!.document, { image });
  assert.deepEqual((sentTo('jina').json as { documents: unknown }).documents, [{ image: 'AAAA' }, 'a page', 'plain']);
  script('openrouter', results);
  await ask({ model: 'test/openrouter', documents: pictures });
  assert.deepEqual((sentTo('openrouter').json as { documents: unknown }).documents, [{ image }, 'a page', 'plain']);
  const refused = await gateway.post('/rerank', { model: 'test/voyage', query: 'q', documents: pictures });
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /documents: the service cannot rank images/);
});

test('every result of a batched list keeps its index in the whole list', async () => {
  const many = Array.from({ length: 1500 }, (_, index) => `text ${index}`);
  const reply = (index: number, score: number) =>
    JSON.stringify({ data: [{ index, relevance_score: score }], usage: { total_tokens: 5 } });
  script('voyage', reply(7, 0.4), reply(499, 0.6));
  const { results, usage } = await ask({ model: 'test/voyage', documents: many, top_n: 1 });
  assert.deepEqual(results, [{ index: 1499, relevance_score: 0.6, document: { text: 'text 1499' } }]);
  assert.equal(usage.total_tokens, 10);
});

test('bad requests are refused with the path of the fault', async () => {
  const good = { model: 'test/cohere', query: 'q', documents };
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ ...good, model: undefined }, /model/],
    [{ ...good, query: undefined }, /query/],
    [{ ...good, query: 5 }, /query/],
    [{ ...good, documents: [] }, /documents/],
    [{ ...good, documents: 'a' }, /documents/],
    [{ ...good, documents: [5] }, /documents\[0\]/],
    [{ ...good, documents: ['a', {}] }, /documents\[1\] must have a text or an image/],
    [{ ...good, documents: [{ text: 5 }] }, /documents\[0\]\.text/],
    [{ ...good, documents: [{ text: null, image: '' }] }, /documents\[0\]/],
    [{ ...good, top_n: 0 }, /top_n/],
    [{ ...good, top_n: -1 }, /top_n/],
    [{ ...good, top_n: 1.5 }, /top_n/],
    [{ ...good, user: 'u'.repeat(257) }, /user/],
    [{ ...good, session_id: 's'.repeat(257) }, /session_id/],
  ];
  for (const [body, message] of cases) {
    const response = await gateway.post('/rerank', body);
    assert.equal(response.status, 400, JSON.stringify(body));
    assert.match(((await response.json()) as { error: { message: string } }).error.message, message);
  }
});

test('a budget holds search units: what could cost more than is left is refused before it is sent', async () => {
  const made = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, ...json },
    body: JSON.stringify({ name: 'limited', limit: 0.003 }),
  });
  const { key } = (await made.json()) as { key: string };
  const headers = { authorization: `Bearer ${key}` };
  const many = Array.from({ length: 150 }, () => 'text');
  gateway.clock.jump(3_600_000);
  script('cohere', cohere(RANKED));
  const large = await gateway.post('/rerank', { model: 'test/cohere', query: 'q', documents: many }, headers);
  assert.equal(large.status, 402);
  const small = await gateway.post('/rerank', { model: 'test/cohere', query: 'q', documents }, headers);
  assert.equal(small.status, 200, await small.text());
  const spent = await gateway.post('/rerank', { model: 'test/cohere', query: 'q', documents }, headers);
  assert.equal(spent.status, 402);
});
