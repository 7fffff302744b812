import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { loadConfig } from '../base/config.ts';
import { silentLog } from '../base/log.ts';
import { parsePrice, textFromPrice } from '../base/money.ts';
import { createHttpServer, type HttpServer } from '../http/server.ts';
import { KINDS, providersFrom } from '../providers/index.ts';
import { TestClock } from '../testing/clock/clock.ts';
import { factsFrom, type ModelFacts } from './facts.ts';
import { buildCatalog, catalogOperations, type EndpointFigures, NO_FIGURES } from './index.ts';
import * as schema from './schema.ts';

const PRICING = {
  prompt: '0.000003',
  completion: '0.000015',
  input_cache_read: '0.0000003',
  overrides: [{ min_prompt_tokens: 200_000, prompt: '0.000006' }],
};
const NOW = Date.UTC(2026, 10, 28);

const PROVIDERS = [
  {
    id: 'acme',
    name: 'Acme',
    kind: 'chat',
    base_url: 'http://acme.example/v1',
    api_key: 'sk-canary-acme',
    models: [
      {
        id: 'acme/large',
        name: 'Acme Large',
        context_length: 200_000,
        max_completion_tokens: 32_000,
        pricing: PRICING,
        input_modalities: ['text', 'image'],
        output_modalities: ['text'],
        supported_parameters: ['tools', 'tool_choice'],
        quantization: 'fp8',
        region: 'eu-west-1',
        data_policy: { zdr: true },
      },
      { id: 'acme/embed', output_modalities: ['embeddings'] },
      { id: 'acme/bare' },
    ],
  },
  {
    id: 'other',
    kind: 'chat',
    base_url: 'http://other.example/v1',
    models: [{ id: 'acme/large', supported_parameters: ['seed'] }, { id: 'made/two' }],
  },
];

function row(id: string, over: Partial<ModelFacts>): ModelFacts {
  return {
    id,
    canonical_slug: `${id}-20260901`,
    name: `Name of ${id}`,
    family: 'line',
    created: null,
    knowledge_cutoff: null,
    hugging_face_id: null,
    context_length: null,
    max_completion_tokens: null,
    input_modalities: null,
    output_modalities: null,
    supported_parameters: null,
    tokenizer: null,
    reasoning: null,
    aliases: [],
    dated: [],
    offers: [],
    source: 'this test',
    date: '2026-11-28',
    ...over,
  };
}

const FACTS = factsFrom({
  version: 1,
  date: '2026-11-28',
  source: 'this test',
  models: [
    row('made/two', {
      created: Date.UTC(2026, 10, 18) / 1000,
      context_length: 1_000,
      tokenizer: 'GPT',
      knowledge_cutoff: '2026-01',
      hugging_face_id: 'made/Two',
      reasoning: { mandatory: true, supported_efforts: ['high', 'low'] },
      input_modalities: ['text', 'audio'],
      output_modalities: ['text'],
    }),
    row('made/one', { created: 1 }),
  ],
});

const FIGURES: EndpointFigures = {
  ...NO_FIGURES,
  latencyMs: { p50: 200, p75: 300, p90: 400, p99: 500 },
  throughput: { p50: 50, p75: 40, p90: 30, p99: 20 },
  uptime5m: 90,
  uptime30m: 95,
  uptime1d: 99.5,
  requests5m: 10,
  requests30m: 40,
  toolCalls1d: 10,
  invalidToolCalls1d: 1,
};

let server: HttpServer;
let base: string;

before(async () => {
  const config = loadConfig({
    env: {},
    cwd: '/',
    kinds: KINDS,
    readFile: () => JSON.stringify({ providers: PROVIDERS }),
  });
  const catalog = buildCatalog(config.providers, providersFrom(config), KINDS, FACTS);
  const clock = new TestClock(NOW);
  server = createHttpServer({
    operations: catalogOperations({
      catalog: () => catalog,
      statistics: () => ({ of: (id) => (id === 'acme:acme/large' ? FIGURES : NO_FIGURES) }),
      popularity: async (_caller, days) =>
        new Map(
          days === 7
            ? [['acme/large', 5]]
            : [
                ['acme/bare', 9],
                ['acme/large', 5],
              ],
        ),
      permits: (caller, { provider }) => caller === 'anywhere' || provider.id === 'other',
    }),
    authenticate: ({ authorization }) => authorization ?? 'anybody',
    clock,
    log: silentLog,
  });
  const { port } = await server.listen(0, '127.0.0.1');
  base = `http://127.0.0.1:${port}/api/v1`;
});

after(() => server.drain(0));

async function get(path: string, wanted?: TSchema, headers: Record<string, string> = {}) {
  const response = await fetch(base + path, { headers: { connection: 'close', ...headers } });
  const text = await response.text();
  assert.ok(!text.includes('canary'));
  if (!response.headers.get('content-type')?.includes('json'))
    return { status: response.status, body: text as never, text };
  const body = JSON.parse(text);
  if (wanted) assert.deepEqual([...Compile(wanted).Errors(body)], []);
  return { status: response.status, body, text };
}

async function listed(query: string): Promise<string[]> {
  const { body } = await get(`/models?${query}`, schema.ModelListSchema);
  return body.data.map(({ id }: { id: string }) => id);
}

test('text models are listed with their facts, and the newest of a family also under its alias', async () => {
  const { status, body } = await get('/models', schema.ModelListSchema);
  assert.equal(status, 200);
  const [large, bare, two, latest] = body.data;
  assert.deepEqual(
    body.data.map(({ id }: { id: string }) => id),
    ['acme/large', 'acme/bare', 'made/two', '~made/line-latest'],
  );
  assert.equal(body.total_count, 4);
  assert.equal(body.links.next, null);
  assert.equal(large.name, 'Acme Large');
  assert.equal(large.context_length, 200_000);
  assert.deepEqual(large.pricing, { request: '0', image: '0', ...PRICING });
  assert.equal(large.architecture.modality, 'text+image->text');
  assert.deepEqual(large.supported_parameters, ['tools', 'tool_choice', 'seed']);
  assert.deepEqual(bare.pricing, { prompt: '-1', completion: '-1' });
  assert.equal(bare.context_length, null);
  assert.equal(bare.created, 0);
  assert.equal(bare.architecture.modality, null);
  assert.ok(!('tokenizer' in bare.architecture) && !('reasoning' in bare) && !('alias_target' in bare));
  assert.deepEqual(
    { ...two, pricing: null, links: null, top_provider: null },
    {
      id: 'made/two',
      canonical_slug: 'made/two-20260901',
      name: 'Name of made/two',
      created: Date.UTC(2026, 10, 18) / 1000,
      description: '',
      context_length: 1_000,
      architecture: {
        input_modalities: ['text', 'audio'],
        output_modalities: ['text'],
        modality: 'text+audio->text',
        instruct_type: null,
        tokenizer: 'GPT',
      },
      pricing: null,
      top_provider: null,
      per_request_limits: null,
      default_parameters: null,
      supported_parameters: [],
      supported_voices: null,
      reasoning: { mandatory: true, supported_efforts: ['high', 'low'] },
      knowledge_cutoff: '2026-01',
      expiration_date: null,
      hugging_face_id: 'made/Two',
      links: null,
    },
  );
  assert.deepEqual(latest.alias_target, { name: 'Name of made/two', slug: 'made/two' });
  assert.equal(latest.canonical_slug, 'made/two-20260901');
});

const FILTERS: [string, string[]][] = [
  ['output_modalities=embeddings', ['acme/embed']],
  ['output_modalities=embeddings,image', ['acme/embed']],
  ['supported_parameters=tools,seed', ['acme/large']],
  ['supported_parameters=nothing', []],
  ['input_modalities=image', ['acme/large']],
  ['input_modalities=text,audio', ['made/two', '~made/line-latest']],
  ['q=LARGE', ['acme/large']],
  ['q=name%20of', ['made/two', '~made/line-latest']],
  ['context=1001', ['acme/large']],
  ['min_price=3', ['acme/large']],
  ['min_price=3.01', []],
  ['max_price=2.99', []],
  ['max_output_price=15', ['acme/large']],
  ['min_output_price=15.5', []],
  ['arch=gpt', ['made/two', '~made/line-latest']],
  ['model_authors=acme,nobody', ['acme/large', 'acme/bare']],
  ['providers=OTHER', ['acme/large', 'made/two', '~made/line-latest']],
  ['zdr=true', ['acme/large']],
  ['region=eu', ['acme/large']],
  ['region=us', []],
  ['min_age_days=10', ['made/two', '~made/line-latest']],
  ['max_age_days=10', ['made/two', '~made/line-latest']],
  ['min_age_days=11', []],
  ['min_tool_success_rate=0.9', ['acme/large']],
  ['max_tool_success_rate=0.8', []],
  ['sort=context-high-to-low', ['acme/large', 'made/two', '~made/line-latest', 'acme/bare']],
  ['sort=newest', ['made/two', '~made/line-latest', 'acme/large', 'acme/bare']],
  ['sort=pricing-low-to-high', ['acme/large', 'acme/bare', 'made/two', '~made/line-latest']],
  ['category=programming', []],
  ['distillable=false', []],
  ['min_coding_index=1', []],
  ['sort=intelligence-high-to-low&q=acme', ['acme/large', 'acme/bare']],
  ['sort=most-popular&q=acme', ['acme/bare', 'acme/large']],
  ['sort=top-weekly&q=acme', ['acme/large', 'acme/bare']],
  ['sort=throughput-high-to-low&q=acme', ['acme/large', 'acme/bare']],
  ['sort=latency-low-to-high&q=acme', ['acme/large', 'acme/bare']],
];

for (const [query, expected] of FILTERS) {
  test(`GET /models?${query} lists exactly the matching models`, async () => {
    assert.deepEqual(await listed(query), expected);
  });
}

test('page links lead through all models and keep the filters', async () => {
  const seen: string[] = [];
  let next: string | null = '/models?output_modalities=all&limit=2&model_authors=acme';
  while (next !== null) {
    const { body }: { body: { data: { id: string }[]; links: { next: string | null }; total_count: number } } =
      await get(next, schema.ModelListSchema);
    assert.equal(body.total_count, 3);
    seen.push(...body.data.map(({ id }) => id));
    next = body.links.next?.replace('/api/v1', '') ?? null;
  }
  assert.deepEqual(seen, ['acme/large', 'acme/embed', 'acme/bare']);
});

test('an unknown or invalid filter or order is refused by name, not ignored', async () => {
  const queries = [
    'category=gardening',
    'distillable=maybe',
    'min_coding_index=high',
    'sort=best',
    'zdr=false',
    'region=mars',
    'limit=0',
    'limit=1001',
    'offset=-1',
    'context=0',
    'min_price=-1',
    'max_tool_success_rate=1.5',
    'colour=red',
  ];
  for (const query of queries) {
    const { status, body } = await get(`/models?${query}`);
    assert.equal(status, 400, query);
    assert.match(body.error.message, new RegExp(query.split('=')[0]!));
    assert.equal(body.error.code, 400);
  }
});

test('the count matches the list, and the user list omits forbidden models', async () => {
  assert.deepEqual((await get('/models/count', schema.ModelsCountSchema)).body, { data: { count: 4 } });
  assert.deepEqual((await get('/models/count?output_modalities=all')).body, { data: { count: 5 } });
  const { body } = await get('/models/user?limit=1', schema.ModelListSchema);
  assert.equal(body.total_count, 3);
  assert.equal(body.data[0].id, 'acme/large');
  assert.deepEqual(body.data[0].supported_parameters, ['seed']);
  assert.equal(body.links.next, '/api/v1/models/user?limit=1&offset=1');
  assert.equal((await get('/models/user?q=x')).status, 400);
  assert.equal((await get('/embeddings/models', schema.ModelListSchema)).body.data[0].id, 'acme/embed');
});

test('the endpoints of a model cover every provider, with facts and statistics', async () => {
  const { body } = await get('/models/acme/large/endpoints', schema.ModelEndpointsSchema);
  const [first, second] = body.data.endpoints;
  assert.equal(body.data.endpoints.length, 2);
  assert.equal(first.name, 'Acme | acme/large');
  assert.equal(first.tag, 'acme/fp8');
  assert.deepEqual(first.supports_tool_choice, { auto: true, function: true, none: true, required: true });
  assert.equal(first.supports_implicit_caching, true);
  assert.deepEqual(first.latency_last_30m, FIGURES.latencyMs);
  assert.deepEqual(first.throughput_last_30m, FIGURES.throughput);
  assert.deepEqual(first.perf_last_30m_by_workload, {
    text_generation: { latency: FIGURES.latencyMs, throughput: FIGURES.throughput, request_count: 40 },
  });
  assert.deepEqual(
    [first.uptime_last_5m, first.uptime_last_30m, first.uptime_last_1d, first.status],
    [90, 95, 99.5, -1],
  );
  assert.equal(second.tag, 'other');
  assert.equal(second.context_length, 0);
  assert.equal(second.status, 0);
  assert.deepEqual(second.pricing, { prompt: '-1', completion: '-1' });
  assert.deepEqual([second.latency_last_30m, second.throughput_last_30m, second.uptime_last_1d], [null, null, null]);
  const zdr = await get('/endpoints/zdr', schema.EndpointListSchema, { authorization: 'anywhere' });
  assert.deepEqual(zdr.body.data, [first]);
  assert.deepEqual((await get('/endpoints/zdr')).body.data, [], 'the policy of the caller permits none of them');
});

test('one model is found by id, slug, alias and in one segment, and an unknown one is 404', async () => {
  for (const path of ['/model/acme/large', '/model/acme/large:nitro']) {
    assert.equal((await get(path, schema.ModelResponseSchema)).body.data.id, 'acme/large');
  }
  assert.equal((await get('/model/made/two-20260901')).body.data.id, 'made/two');
  assert.equal((await get('/model/~made/line-latest')).body.data.alias_target.slug, 'made/two');
  assert.equal((await get('/models/~made/line-latest/endpoints')).body.data.id, 'made/two');
  const { body } = await get('/models/acme%2Flarge');
  assert.deepEqual([body.id, body.object, body.owned_by], ['acme/large', 'model', 'acme']);
  const unknown = [
    '/model/acme/none',
    '/models/acme/none/endpoints',
    '/models/%20/%2f/endpoints',
    '/models/none',
    '/model/acme/large:free',
  ];
  for (const path of unknown) assert.equal((await get(path)).status, 404, path);
});

test('configured providers are listed with null for unknown facts', async () => {
  const { body } = await get('/providers', schema.ProviderListSchema);
  assert.deepEqual(
    body.data.map(({ name, slug }: { name: string; slug: string }) => [name, slug]),
    [
      ['Acme', 'acme'],
      ['other', 'other'],
    ],
  );
  assert.equal(body.data[0].privacy_policy_url, null);
});

test('the feed is newest first and escapes model and host names', async () => {
  const { text } = await get('/models?use_rss=true');
  assert.match(text, /^<\?xml/);
  assert.ok(text.indexOf('made/two') < text.indexOf('acme/large'));
  assert.ok(text.includes('<pubDate>Wed, 18 Nov 2026'));
});

test('errors for Anthropic clients have the Anthropic format', async () => {
  const headers = { 'anthropic-version': '2023-06-01' };
  const { status, body } = await get('/models/none', undefined, headers);
  assert.equal(status, 404);
  assert.equal(body.type, 'error');
  assert.equal(body.error.type, 'not_found_error');
  assert.equal((await get('/models?after_id=x', undefined, headers)).body.error.type, 'invalid_request_error');
});

test('the text of a price parses to the same price', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 24n }), (price) => {
      const text = textFromPrice(price);
      assert.equal(parsePrice(text), price);
      assert.match(text, /^(0|[1-9]\d*)(\.\d*[1-9])?$/);
    }),
  );
});
