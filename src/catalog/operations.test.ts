import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { systemClock } from '../base/clock.ts';
import { loadConfig } from '../base/config.ts';
import { silentLog } from '../base/log.ts';
import { parsePrice, textFromPrice } from '../base/money.ts';
import { createHttpServer, type HttpServer } from '../http/server.ts';
import { KINDS, providersFrom } from '../providers/index.ts';
import { buildCatalog, catalogOperations } from './index.ts';
import { ModelEndpointsSchema, ModelListSchema } from './schema.ts';

const PRICING = {
  prompt: '0.000003',
  completion: '0.000015',
  input_cache_read: '0.0000003',
  overrides: [{ min_prompt_tokens: 200_000, prompt: '0.000006' }],
};

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
      },
      { id: 'acme/embed', output_modalities: ['embeddings'] },
      { id: 'acme/bare' },
    ],
  },
  {
    id: 'other',
    kind: 'chat',
    base_url: 'http://other.example/v1',
    models: [{ id: 'acme/large', supported_parameters: ['seed'] }],
  },
];

let server: HttpServer;
let base: string;

before(async () => {
  const env = { OPENAI_API_KEY: 'sk-canary-openai' };
  const config = loadConfig({ env, cwd: '/', kinds: KINDS, readFile: () => JSON.stringify({ providers: PROVIDERS }) });
  const catalog = buildCatalog(config.providers, providersFrom(config), KINDS);
  server = createHttpServer({
    operations: catalogOperations(() => catalog),
    authenticate: () => 'anybody',
    clock: systemClock,
    log: silentLog,
  });
  const { port } = await server.listen(0, '127.0.0.1');
  base = `http://127.0.0.1:${port}/api/v1`;
});

after(() => server.drain(0));

async function get(path: string, schema?: TSchema) {
  const response = await fetch(base + path, { headers: { connection: 'close' } });
  const text = await response.text();
  assert.ok(!text.includes('canary'));
  const body = JSON.parse(text);
  if (schema) assert.deepEqual([...Compile(schema).Errors(body)], []);
  return { status: response.status, body };
}

function idsOf(body: { data: { id: string }[] }): string[] {
  return body.data.map(({ id }) => id);
}

test('models that write text are listed with what is known of them', async () => {
  const { status, body } = await get('/models', ModelListSchema);
  assert.equal(status, 200);
  assert.deepEqual(idsOf(body), ['acme/large', 'acme/bare']);
  assert.equal(body.total_count, 2);
  assert.equal(body.links.next, null);
  const [large, bare] = body.data;
  assert.equal(large.name, 'Acme Large');
  assert.equal(large.context_length, 200_000);
  assert.deepEqual(large.pricing, { request: '0', image: '0', ...PRICING });
  assert.equal(large.architecture.modality, 'text+image->text');
  assert.deepEqual(large.supported_parameters, ['tools', 'tool_choice', 'seed']);
  assert.deepEqual(bare.pricing, { prompt: '-1', completion: '-1' });
  assert.equal(bare.context_length, null);
  assert.equal(bare.architecture.modality, null);
});

test('other kinds of models are listed when they are asked for', async () => {
  assert.deepEqual(idsOf((await get('/models?output_modalities=embeddings', ModelListSchema)).body), ['acme/embed']);
  assert.equal((await get('/models?output_modalities=all', ModelListSchema)).body.total_count, 3);
  assert.deepEqual(idsOf((await get('/models?supported_parameters=tools', ModelListSchema)).body), ['acme/large']);
});

test('pages follow each other by their links until all models were seen', async () => {
  const seen: string[] = [];
  let next: string | null = '/models?output_modalities=all&limit=2';
  while (next !== null) {
    const { body }: { body: { data: { id: string }[]; links: { next: string | null } } } = await get(
      next,
      ModelListSchema,
    );
    seen.push(...idsOf(body));
    next = body.links.next?.replace('/api/v1', '') ?? null;
  }
  assert.deepEqual(seen, ['acme/large', 'acme/embed', 'acme/bare']);
});

test('a filter that does not exist is refused, not ignored', async () => {
  for (const query of ['region=eu', 'limit=0', 'limit=1001', 'offset=-1']) {
    const { status, body } = await get(`/models?${query}`);
    assert.equal(status, 400);
    assert.match(body.error.message, new RegExp(query.split('=')[0]!));
  }
});

test('the endpoints of a model are those of every provider, with what each says', async () => {
  const { body } = await get('/models/acme/large/endpoints', ModelEndpointsSchema);
  const [first, second] = body.data.endpoints;
  assert.equal(body.data.endpoints.length, 2);
  assert.equal(first.name, 'Acme | acme/large');
  assert.equal(first.tag, 'acme/fp8');
  assert.deepEqual(first.supports_tool_choice, { auto: true, function: true, none: true, required: true });
  assert.equal(second.tag, 'other');
  assert.equal(second.context_length, 0);
  assert.deepEqual(second.pricing, { prompt: '-1', completion: '-1' });
});

test('a model that is only known by its author has endpoints too; an unknown one is 404', async () => {
  const { body } = await get('/models/openai/gpt-4o/endpoints', ModelEndpointsSchema);
  assert.equal(body.data.id, 'openai/gpt-4o');
  assert.equal(body.data.endpoints[0].provider_name, 'OpenAI');
  for (const path of ['/models/acme/none/endpoints', '/models/nobody/gpt-4o/endpoints', '/models/%20/%2f/endpoints']) {
    assert.equal((await get(path)).status, 404);
  }
});

test('the text of a price is read back as the same price', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 24n }), (price) => {
      const text = textFromPrice(price);
      assert.equal(parsePrice(text), price);
      assert.match(text, /^(0|[1-9]\d*)(\.\d*[1-9])?$/);
    }),
  );
});
