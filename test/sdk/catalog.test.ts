/**
 * The catalog through the official SDKs, unmodified: `openai`, `@anthropic-ai/sdk` and `@openrouter/sdk`, which checks every
 * answer against its own schemas. And the names that their users write, up to what the upstream is asked for.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { OpenRouter } from '@openrouter/sdk';
import fc from 'fast-check';
import OpenAI from 'openai';
import { SHIPPED_FACTS } from '../../src/catalog/snapshot/index.ts';
import { INFERENCE_KEY, startGateway, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Format } from '../../src/testing/upstream/answers.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    env: { OPENROUTER_API_KEY: 'k', GATEHOUSE_NAMESPACE: 'openrouter' },
    providers: {
      // As the environment would switch them on, at the address of the scripted upstream.
      openai: { kind: 'openai', models: undefined, name: 'OpenAI' },
      anthropic: { kind: 'anthropic', models: undefined, name: 'Anthropic' },
      google: { kind: 'google', models: undefined, name: 'Google' },
      mirror: {
        kind: 'chat',
        models: [
          { id: 'openai/gpt-4o', data_policy: { zdr: true } },
          { id: 'mirror/vectors', output_modalities: ['embeddings'] },
        ],
      },
    },
  },
);

const openai = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api, maxRetries: 0 });
const anthropic = new Anthropic({ apiKey: INFERENCE_KEY, authToken: null, baseURL: gateway.url, maxRetries: 0 });
const openrouter = new OpenRouter({ apiKey: INFERENCE_KEY, serverURL: gateway.api, retryConfig: { strategy: 'none' } });

test('openai | models.list has every model by its id', async () => {
  const ids: string[] = [];
  for await (const { id } of openai.models.list()) ids.push(id);
  assert.ok(ids.length > 100);
  for (const id of ['openai/gpt-5.4', 'anthropic/claude-opus-5', 'openai/gpt-4o', '~openai/gpt-sol-latest']) {
    assert.ok(ids.includes(id), id);
  }
  assert.equal(new Set(ids).size, ids.length);
});

test('openai | models.retrieve finds a model by its full, bare and dated name, and says 404 for none', async () => {
  for (const name of ['openai/gpt-5.4', 'gpt-5.4', 'gpt-5.4-2026-03-05']) {
    const model = await openai.models.retrieve(name);
    assert.deepEqual([model.id, model.object, model.owned_by], ['openai/gpt-5.4', 'model', 'openai']);
    assert.equal(model.created, Date.UTC(2026, 2, 5) / 1000);
  }
  await assert.rejects(openai.models.retrieve('nobody/nothing'), OpenAI.NotFoundError);
});

test('anthropic | models.list pages forwards and backwards over the same models, each once', async () => {
  const forwards: Anthropic.ModelInfo[] = [];
  for await (const model of anthropic.models.list({ limit: 50 })) forwards.push(model);
  const ids = forwards.map(({ id }) => id);
  assert.ok(ids.length > 100);
  assert.equal(new Set(ids).size, ids.length);
  const backwards: string[] = [];
  let page = await anthropic.models.list({ limit: 50, before_id: ids.at(-1)! });
  for (;;) {
    backwards.unshift(...page.data.map(({ id }) => id));
    if (!page.hasNextPage()) break;
    page = await page.getNextPage();
  }
  assert.deepEqual(backwards, ids.slice(0, -1));
  // A page that ends with the last model is the last one, also when it is full.
  const full = await anthropic.models.list({ limit: 2, after_id: ids.at(-3)! });
  assert.deepEqual([full.data.length, full.has_more, full.last_id], [2, false, ids.at(-1)]);
  const first = await anthropic.models.list({ limit: 2, before_id: ids[2]! });
  assert.deepEqual([first.data.length, first.has_more, first.first_id], [2, false, ids[0]]);
  assert.equal((await anthropic.models.list()).data.length, 20);
  assert.deepEqual((await anthropic.models.list({ after_id: ids.at(-1)! })).data, []);
  await assert.rejects(anthropic.models.list({ after_id: 'nobody/nothing' }), Anthropic.BadRequestError);
  await assert.rejects(anthropic.models.list({ after_id: ids[0]!, before_id: ids[1]! }), Anthropic.BadRequestError);
  assert.deepEqual(
    (await anthropic.beta.models.list({ limit: 3 })).data.map(({ id }) => id),
    ids.slice(0, 3),
  );
});

test('anthropic | models.retrieve knows a model by the name that its vendor gave it', async () => {
  for (const name of ['claude-haiku-4-5-20251001', 'claude-haiku-4-5', 'anthropic/claude-haiku-4.5']) {
    const model = await anthropic.models.retrieve(name);
    assert.deepEqual(model, {
      type: 'model',
      id: 'anthropic/claude-haiku-4.5',
      display_name: 'Claude Haiku 4.5',
      created_at: '2025-10-15T00:00:00.000Z',
      capabilities: null,
      deprecated_at: null,
      lifecycle: 'active',
      line: 'haiku',
      max_input_tokens: 200_000,
      max_tokens: 64_000,
      retires_at: null,
    });
  }
  await assert.rejects(anthropic.models.retrieve('claude'), Anthropic.NotFoundError);
});

test('@openrouter/sdk | models.list, its pages and filters', async () => {
  const ids: string[] = [];
  const pages = await openrouter.models.list({ limit: 60, outputModalities: 'all' });
  for await (const { result } of pages) ids.push(...result.data.map(({ id }) => id));
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.includes('mirror/vectors'));
  const first = await openrouter.models.list({
    q: 'opus-5',
    modelAuthors: 'anthropic',
    providers: 'Anthropic',
    minAgeDays: 1,
  });
  for await (const { result } of first) {
    assert.deepEqual(
      result.data.map(({ id }) => id),
      ['anthropic/claude-opus-5'],
    );
    const [model] = result.data;
    assert.equal(model!.architecture.tokenizer, 'Claude');
    assert.deepEqual(model!.reasoning?.supportedEfforts, ['max', 'xhigh', 'high', 'medium', 'low', 'none']);
    assert.equal(model!.topProvider.maxCompletionTokens, 128_000);
  }
  for await (const { result } of await openrouter.models.list({ category: 'programming' }))
    assert.deepEqual(result.data, []);
});

test('@openrouter/sdk | models.get, count and listForUser', async () => {
  const { data } = await openrouter.models.get({ author: '~anthropic', slug: 'claude-opus-latest' });
  assert.deepEqual(data.aliasTarget, { name: 'Claude Opus 5.5', slug: 'anthropic/claude-opus-5.5' });
  assert.equal((await openrouter.models.get({ author: 'openai', slug: 'gpt-4o:nitro' })).data.id, 'openai/gpt-4o');
  const { data: count } = await openrouter.models.count({ outputModalities: 'embeddings' });
  const vectors = await (await gateway.get('/embeddings/models')).json();
  assert.equal(count.count, (vectors as { total_count: number }).total_count);
  assert.ok(count.count > 1);
  const user = await openrouter.models.listForUser({ bearer: INFERENCE_KEY }, { limit: 1 });
  for await (const { result } of user) {
    assert.equal(result.data.length, 1);
    break;
  }
});

test('@openrouter/sdk | listForUser leaves out what the account does not allow', async (t) => {
  const strict = await startGateway(t, {
    yaml: { account: { zdr: true } },
    providers: {
      keeps: {},
      forgets: { model: { data_policy: { zdr: true, trains: false, publishes: false, retains_for_safety: false } } },
    },
  });
  const client = new OpenRouter({ apiKey: INFERENCE_KEY, serverURL: strict.api, retryConfig: { strategy: 'none' } });
  const ids: string[] = [];
  for await (const { result } of await client.models.listForUser({ bearer: INFERENCE_KEY })) {
    ids.push(...result.data.map(({ id }) => id));
  }
  assert.deepEqual(ids, ['test/forgets']);
});

test('@openrouter/sdk | endpoints and providers', async () => {
  const { data } = await openrouter.endpoints.list({ author: 'openai', slug: 'gpt-4o' });
  assert.deepEqual(
    data.endpoints.map(({ tag }) => tag),
    ['openai', 'mirror', 'openrouter'],
  );
  assert.equal(data.architecture.tokenizer, 'GPT');
  const zdr = await openrouter.endpoints.listZdrEndpoints();
  assert.deepEqual(
    zdr.data.map(({ providerName }) => providerName),
    ['mirror'].map(() => 'Provider mirror'),
  );
  const providers = await openrouter.providers.list();
  assert.deepEqual(
    providers.data.map(({ slug }) => slug),
    ['openai', 'anthropic', 'google', 'mirror', 'openrouter'],
  );
  // Behind another address it is another's word that counts.
  assert.equal(providers.data[0]!.privacyPolicyUrl, null);
});

const ASKED: [provider: string, format: Format, name: string, upstream: string, answered: string][] = [
  ['openai', 'chat', 'gpt-5.4', 'gpt-5.4', 'openai/gpt-5.4'],
  ['openai', 'chat', 'openai/gpt-5.4', 'gpt-5.4', 'openai/gpt-5.4'],
  ['openai', 'chat', 'gpt-5.4-2026-03-05', 'gpt-5.4-2026-03-05', 'openai/gpt-5.4'],
  ['openai', 'chat', 'openai/gpt-5.4:floor', 'gpt-5.4', 'openai/gpt-5.4'],
  ['openai', 'chat', '~openai/gpt-sol-latest', 'gpt-6.2-sol', 'openai/gpt-6.2-sol'],
  ['openai', 'chat', 'gpt-of-tomorrow', 'gpt-of-tomorrow', 'openai/gpt-of-tomorrow'],
  ['anthropic', 'messages', 'claude-haiku-4-5-20251001', 'claude-haiku-4-5-20251001', 'anthropic/claude-haiku-4.5'],
  ['anthropic', 'messages', 'anthropic/claude-haiku-4.5', 'claude-haiku-4-5', 'anthropic/claude-haiku-4.5'],
  ['anthropic', 'messages', 'claude-haiku-4.5', 'claude-haiku-4-5', 'anthropic/claude-haiku-4.5'],
  ['anthropic', 'messages', '~anthropic/claude-opus-latest', 'claude-opus-5-5', 'anthropic/claude-opus-5.5'],
];

for (const [provider, format, name, upstream, answered] of ASKED) {
  test(`${name} reaches ${provider} as ${upstream} and is answered as ${answered}`, async () => {
    gateway.upstream.script(provider, [answerOf(format, false, { text: 'ok' })]);
    const body = {
      model: name,
      max_tokens: 16,
      provider: { only: [provider] },
      messages: [{ role: 'user', content: 'hi' }],
    };
    const response = await gateway.post('/chat/completions', body);
    const answer = (await response.json()) as { model: string; error?: unknown };
    assert.equal(response.status, 200, JSON.stringify(answer));
    assert.equal(answer.model, answered);
    assert.equal((gateway.upstream.requests(provider).at(-1)!.json as { model: string }).model, upstream);
  });
}

test('what the facts do not say of a model is not held against it', async () => {
  gateway.upstream.script('anthropic', [answerOf('messages', false, { text: '{"a":1}' })]);
  const schema = {
    type: 'object',
    properties: { a: { type: 'number' } },
    required: ['a'],
    additionalProperties: false,
  };
  const response = await gateway.post('/chat/completions', {
    model: 'anthropic/claude-opus-5.5',
    max_tokens: 16,
    provider: { only: ['anthropic'] },
    response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema } },
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'hi' },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0xLjQK' } },
        ],
      },
    ],
  });
  assert.equal(response.status, 200, await response.text());
});

test("a chat request without an output cap is sent to Anthropic with the model's own limit", async () => {
  gateway.upstream.script('anthropic', [answerOf('messages', false, { text: 'ok' })]);
  const body = {
    model: 'claude-haiku-4-5',
    provider: { only: ['anthropic'] },
    messages: [{ role: 'user', content: 'hi' }],
  };
  assert.equal((await gateway.post('/chat/completions', body)).status, 200);
  assert.equal((gateway.upstream.requests('anthropic').at(-1)!.json as { max_tokens: number }).max_tokens, 64_000);
});

test('models/gemini-... reaches Google by the plain name', async () => {
  gateway.upstream.script('google', [{ status: 500, chunks: ['{}'] }]);
  await gateway.post('/chat/completions', {
    model: 'models/gemini-2.5-pro',
    provider: { only: ['google'] },
    messages: [{ role: 'user', content: 'hi' }],
  });
  assert.match(gateway.upstream.requests('google').at(-1)!.path, /\/models\/gemini-2\.5-pro:generateContent/);
});

test('@openrouter/sdk | what is known of a service is said of it at its own address', async (t) => {
  const own = await startGateway(t, { env: { OPENAI_API_KEY: 'k', GROQ_API_KEY: 'k' } });
  const client = new OpenRouter({ apiKey: INFERENCE_KEY, serverURL: own.api, retryConfig: { strategy: 'none' } });
  const { data } = await client.providers.list();
  const openai = data.find(({ slug }) => slug === 'openai')!;
  assert.equal(openai.privacyPolicyUrl, 'https://openai.com/policies/privacy-policy/');
  assert.equal(openai.headquarters, 'US');
  assert.equal(data.find(({ slug }) => slug === 'groq')!.privacyPolicyUrl, null);
});

test('what a refresh has written is in use after a reload', async (t) => {
  const fresh = await startGateway(t, { env: { OPENAI_API_KEY: 'k' } });
  const known = SHIPPED_FACTS.models.find(({ id }) => id === 'openai/gpt-5.4')!;
  const model = {
    ...known,
    id: 'openai/gpt-next',
    canonical_slug: 'openai/gpt-next',
    name: 'GPT Next',
    aliases: [],
    dated: [],
  };
  const offers = [{ ...known.offers[0]!, upstream_id: 'gpt-next' }];
  const facts = { version: 1, date: '2099-01-01', source: 'a test', models: [{ ...model, offers }] };
  assert.equal((await fresh.get('/model/openai/gpt-5.4')).status, 200);
  writeFileSync(path.join(fresh.dataDir, 'catalog.json'), JSON.stringify(facts));
  fresh.app.reload(fresh.config);
  const { data } = (await (await fresh.get('/models')).json()) as { data: { id: string; name: string }[] };
  assert.deepEqual(
    data.map(({ id, name }) => [id, name]),
    [
      ['openai/gpt-next', 'GPT Next'],
      ['~openai/gpt-latest', 'gpt (latest)'],
    ],
  );
});

test('an unknown model is refused by name; a missing free variant says so', async () => {
  const cases = [
    ['nobody/nothing', 400, 'model_not_found'],
    ['openai/gpt-5.4:thinking', 400, 'model_not_found'],
    ['openai/gpt-5.4:free', 404, 'free_variant_ended'],
    ['~openai/nothing-latest', 400, 'model_not_found'],
  ] as const;
  for (const [model, status, code] of cases) {
    const response = await gateway.post('/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }] });
    const { error } = (await response.json()) as { error: { availability: { code: string } } };
    assert.deepEqual([response.status, error.availability.code], [status, code], model);
  }
});

test('no name of a model brings the gateway down, finds two models, or leads to another path', async () => {
  const { catalog } = {
    catalog: await gateway.get('/models?output_modalities=all').then((r) => r.json()),
  } as never as {
    catalog: { data: { id: string }[] };
  };
  const ids = catalog.data.map(({ id }) => id);
  const piece = fc.oneof(
    fc.constantFrom(...ids),
    fc.constantFrom(
      '',
      '/',
      ':',
      '~',
      '@',
      'models/',
      ':free',
      ':nitro',
      ':thinking',
      '-latest',
      '__proto__',
      'constructor',
      '..',
      '%2e%2e',
      '-20251001',
    ),
    fc.string({ maxLength: 12 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 4 }), async (pieces) => {
      const name = pieces.join('');
      const response = await gateway.get(`/models/${encodeURIComponent(name)}`);
      const body = (await response.json()) as { id?: string; data?: unknown; error?: unknown };
      assert.ok([200, 404, 400].includes(response.status), `${name}: ${response.status}`);
      if (response.status === 200 && body.id !== undefined) {
        const again = (await (await gateway.get(`/models/${encodeURIComponent(body.id)}`)).json()) as { id: string };
        assert.equal(again.id, body.id);
      }
    }),
    { numRuns: 150 },
  );
  assert.ok(!(await (await gateway.get('/models')).text()).includes(UPSTREAM_KEY));
});
