import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../base/config.ts';
import { KINDS, providersFrom } from '../providers/index.ts';
import { buildCatalog, type Catalog, type Model } from './index.ts';

function catalogOf(env: Record<string, string>, providers?: unknown): Catalog {
  const config = loadConfig({
    env,
    cwd: '/',
    kinds: KINDS,
    readFile() {
      if (providers === undefined) throw Object.assign(new Error('none'), { code: 'ENOENT' });
      return JSON.stringify({ providers });
    },
  });
  return buildCatalog(config.providers, providersFrom(config), KINDS);
}

function idsOf(model: Model | undefined): string[] {
  return model!.endpoints.map(({ id }) => id);
}

function chat(id: string, models: unknown[]) {
  return { id, name: id.toUpperCase(), kind: 'chat', base_url: `http://${id}.example/v1`, api_key: 'k', models };
}

test('a listed model is found only by its id and keeps its settings', () => {
  const catalog = catalogOf({}, [
    chat('acme', [
      {
        id: 'acme/large',
        upstream_id: 'large-1',
        context_length: 8,
        region: 'us',
        pricing: { prompt: '1', completion: '2' },
      },
    ]),
  ]);
  const endpoint = catalog.find('acme/large')!.endpoints[0]!;
  assert.equal(endpoint.id, 'acme:acme/large');
  assert.equal(endpoint.provider.name, 'ACME');
  assert.equal(endpoint.upstreamId, 'large-1');
  assert.equal(endpoint.contextLength, 8);
  assert.equal(endpoint.maxCompletionTokens, null);
  assert.equal(endpoint.pricing!.prompt, 10n ** 18n);
  assert.equal(endpoint.supportedParameters, null);
  assert.equal(endpoint.dataPolicy.trains, true);
  assert.equal(catalog.find('acme/Large'), undefined);
  assert.equal(catalog.find('large'), undefined);
  assert.equal(catalog.find('__proto__'), undefined);
});

test('an alias is a name of its model at every provider, after ids and before all other names', () => {
  const catalog = catalogOf({}, [
    chat('a', [{ id: 'm/x', aliases: ['my model', 'm/y', 'gpt-4o'] }, { id: 'openai/gpt-4o' }]),
    chat('b', [{ id: 'm/x', aliases: ['my model'] }, { id: 'm/y' }]),
  ]);
  assert.deepEqual(idsOf(catalog.find('my model')), ['a:m/x', 'b:m/x']);
  assert.equal(catalog.find('m/y')!.id, 'm/y');
  assert.equal(catalog.find('gpt-4o')!.id, 'm/x');
  for (const aliases of [['x', 'x'], [' x'], ['']]) {
    assert.throws(() => catalogOf({}, [chat('a', [{ id: 'm/x', aliases }])]), /models\[0\]\.aliases/);
  }
  const twice = [
    { id: 'm/x', aliases: ['x'] },
    { id: 'm/y', aliases: ['x'] },
  ];
  assert.throws(() => catalogOf({}, [chat('a', twice)]), /models\[1\] has an alias that the model m\/x has too/);
});

test('several providers of a model become its endpoints, in configuration order', () => {
  const catalog = catalogOf({}, [
    chat('a', [{ id: 'm/x' }, { id: 'm/y' }]),
    chat('b', [{ id: 'm/x', name: 'Model X', upstream_id: 'other' }]),
  ]);
  const model = catalog.find('m/x')!;
  assert.equal(model.name, 'Model X');
  assert.deepEqual(
    model.endpoints.map(({ id, upstreamId }) => [id, upstreamId]),
    [
      ['a:m/x', 'x'],
      ['b:m/x', 'other'],
    ],
  );
  assert.deepEqual(
    catalog.models.map(({ id }) => id),
    ['m/x', 'm/y'],
  );
});

test('an environment-enabled provider serves any model of its author, unknown ones by name only', () => {
  const catalog = catalogOf({ OPENAI_API_KEY: 'k' });
  const endpoint = catalog.find('openai/gpt-of-tomorrow')!.endpoints[0]!;
  assert.equal(endpoint.upstreamId, 'gpt-of-tomorrow');
  assert.equal(endpoint.pricing, null);
  assert.equal(endpoint.contextLength, null);
  assert.equal(endpoint.inputModalities, null);
  assert.deepEqual(endpoint.dataPolicy, { zdr: false, trains: true, publishes: true, retainsForSafety: true });
  assert.equal(catalog.find('anthropic/claude-opus-5'), undefined);
  assert.equal(catalog.find('openai/'), undefined);
  assert.equal(catalog.find('openai'), undefined);
  assert.equal(catalog.find('openai/a b'), undefined);
  assert.equal(catalog.find(`openai/${'x'.repeat(300)}`), undefined);
  assert.ok(catalog.models.every(({ facts }) => facts?.offers.some(({ provider }) => provider === 'openai')));
});

test('names with several slashes reach a router unchanged', () => {
  const catalog = catalogOf({ OPENROUTER_API_KEY: 'k', HF_TOKEN: 'h' });
  assert.equal(catalog.find('openrouter/anthropic/claude-opus-5')!.endpoints[0]!.upstreamId, 'anthropic/claude-opus-5');
  assert.equal(
    catalog.find('huggingface/meta-llama/Llama-3.1-8B')!.endpoints[0]!.upstreamId,
    'meta-llama/Llama-3.1-8B',
  );
});

test('a routing suffix is recognized and not sent upstream as part of the model name', () => {
  const catalog = catalogOf({ OPENAI_API_KEY: 'k' }, [
    chat('a', [{ id: 'm/x', pricing: { prompt: '1', completion: '1' } }, { id: 'm/x:thinking' }]),
    chat('b', [{ id: 'm/x', pricing: { prompt: '0', completion: '0' } }, { id: 'm/y:free' }]),
  ]);
  for (const base of ['openai/gpt-4o', 'openai/gpt-of-tomorrow', 'gpt-4o', 'gpt-of-tomorrow', 'm/x', 'm/y:free']) {
    for (const variant of ['nitro', 'floor', 'exacto'] as const) {
      const model = catalog.find(`${base}:${variant}`)!;
      assert.equal(model.variant, variant);
      assert.deepEqual({ ...model, variant: undefined }, { ...catalog.find(base)!, variant: undefined });
    }
  }
  assert.deepEqual(idsOf(catalog.find('m/x:free')), ['b:m/x']);
  assert.deepEqual(idsOf(catalog.find('m/x')), ['a:m/x', 'b:m/x']);
  assert.deepEqual(idsOf(catalog.find('openai/gpt-4o:free')), []);
  assert.equal(catalog.find('m/x:thinking')!.id, 'm/x:thinking');
  for (const name of [
    'm/x:extended',
    'm/x:online',
    'm/x:nitro:floor',
    'm/z:nitro',
    'm/x:',
    ':nitro',
    'openai/:nitro',
  ]) {
    assert.equal(catalog.find(name), undefined, name);
  }
  assert.equal(catalog.find('openai/ft:gpt-4o:org::abc')!.endpoints[0]!.upstreamId, 'ft:gpt-4o:org::abc');
});

test('bare names of a vendor reach its models at any provider', () => {
  const open = catalogOf({ OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'a' });
  for (const name of ['gpt-4o', 'gpt-5.2-mini', 'o3', 'o4-mini', 'chatgpt-4o-latest', 'ft:gpt-4o:org::abc']) {
    assert.equal(open.find(name)!.endpoints[0]!.upstreamId, name);
  }
  assert.equal(open.find('claude-opus-5-20260101')!.endpoints[0]!.provider.id, 'anthropic');
  for (const name of ['oops', 'gpt', 'large', '', 'claude']) assert.equal(open.find(name), undefined, name);
  const listed = catalogOf({}, [chat('mirror', [{ id: 'openai/gpt-4o' }])]);
  assert.equal(listed.find('gpt-4o')!.endpoints[0]!.provider.id, 'mirror');
  assert.equal(listed.find('gpt-4o-mini'), undefined);
});

test('a listed and an open-ended offering become endpoints of one model', () => {
  const catalog = catalogOf({ OPENAI_API_KEY: 'k' }, [chat('mirror', [{ id: 'openai/gpt-4o' }])]);
  assert.deepEqual(
    catalog.find('openai/gpt-4o')!.endpoints.map(({ id }) => id),
    ['mirror:openai/gpt-4o', 'openai:openai/gpt-4o'],
  );
});

test('with a base_url, catalog prices apply only if configured or if it is the usual URL', () => {
  const id = 'anthropic/claude-haiku-4.5';
  const provider = (name: string, more: object) => ({
    id: name,
    kind: 'anthropic',
    api_key: 'k',
    models: [{ id }],
    ...more,
  });
  const catalog = catalogOf({}, [
    provider('usual', { base_url: 'https://api.anthropic.com/v1/' }),
    provider('kept', { base_url: 'http://proxy.example', catalog_prices: true }),
    provider('dropped', { base_url: 'http://proxy.example', catalog_prices: false }),
    provider('free', { catalog_prices: false }),
    provider('unsaid', { base_url: 'http://proxy.example' }),
    provider('stated', {
      base_url: 'http://proxy.example',
      models: [{ id, pricing: { prompt: '1', completion: '1' } }],
    }),
    { id: 'whole', kind: 'anthropic', api_key: 'k', base_url: 'http://proxy.example' },
  ]);
  const priced = catalog.find(id)!.endpoints.map((one) => [one.provider.id, one.pricing !== null]);
  assert.deepEqual(priced, [
    ['usual', true],
    ['kept', true],
    ['dropped', false],
    ['free', false],
    ['unsaid', false],
    ['stated', true],
    ['whole', false],
  ]);
  const [unsaid, whole, ...others] = catalog.unpriced;
  assert.deepEqual([unsaid, whole!.provider, others], [{ provider: 'unsaid', models: 1 }, 'whole', []]);
  assert.ok(whole!.models > 1);
});

test('a listed model inherits missing settings from the facts, but its price only from the same service', () => {
  const stated = { id: 'anthropic/claude-haiku-4.5', context_length: 5, supported_parameters: ['seed'] };
  const catalog = catalogOf({}, [
    { id: 'public', kind: 'anthropic', api_key: 'k', models: [stated] },
    { id: 'proxied', kind: 'anthropic', base_url: 'http://proxy.example', api_key: 'k', models: [{ id: stated.id }] },
    chat('elsewhere', [{ id: stated.id }]),
    {
      id: 'own',
      kind: 'anthropic',
      api_key: 'k',
      models: [{ ...stated, upstream_id: 'mine', pricing: { prompt: '1', completion: '1' } }],
    },
    chat('unknown', [{ id: 'anthropic/claude-nobody' }]),
  ]);
  const [atHome, proxied, elsewhere, own] = catalog.find(stated.id)!.endpoints;
  assert.equal(catalog.find(stated.id)!.name, 'Claude Haiku 4.5');
  assert.equal(atHome!.contextLength, 5);
  assert.deepEqual(atHome!.supportedParameters, ['seed']);
  assert.deepEqual(atHome!.partial, { parameters: false, inputs: false });
  assert.equal(atHome!.maxCompletionTokens, 64_000);
  assert.deepEqual(atHome!.inputModalities, ['text', 'image', 'file']);
  assert.equal(atHome!.pricing!.prompt, 10n ** 12n);
  assert.equal(atHome!.pricing!.inputCacheWrite1h, 2n * 10n ** 12n);
  assert.deepEqual(
    [atHome, proxied, elsewhere, own].map((one) => one!.upstreamId),
    ['claude-haiku-4-5', 'claude-haiku-4-5', 'claude-haiku-4.5', 'mine'],
  );
  assert.deepEqual(
    [proxied, elsewhere].map((one) => [one!.pricing, one!.contextLength]),
    [
      [null, 200_000],
      [null, 200_000],
    ],
  );
  assert.equal(proxied!.partial!.parameters, true);
  assert.equal(own!.pricing!.prompt, 10n ** 18n);
  assert.equal(catalog.find('anthropic/claude-nobody')!.facts, undefined);
});

test('a dated name requests that version from the vendor and the plain model from others', () => {
  const catalog = catalogOf({ OPENAI_API_KEY: 'k', OPENROUTER_API_KEY: 'k' });
  for (const name of ['gpt-5.4-2026-03-05', 'openai/gpt-5.4-2026-03-05']) {
    const model = catalog.find(name)!;
    assert.equal(model.id, 'openai/gpt-5.4');
    assert.deepEqual(
      model.endpoints.map(({ id, upstreamId }) => [id, upstreamId]),
      [
        ['openai:openai/gpt-5.4', 'gpt-5.4-2026-03-05'],
        ['openrouter:openai/gpt-5.4', 'openai/gpt-5.4'],
      ],
    );
  }
  const mapped = catalogOf({}, [
    { id: 'openai', kind: 'openai', api_key: 'k', models: [{ id: 'openai/gpt-5.4', upstream_id: 'mine' }] },
  ]);
  assert.equal(mapped.find('gpt-5.4-2026-03-05')!.endpoints[0]!.upstreamId, 'mine');
  const unlisted = catalog.find('gpt-5.4-2099-01-01')!;
  assert.deepEqual([unlisted.endpoints.length, unlisted.endpoints[0]!.pricing], [1, null]);
});

test('the latest of a family is the newest that is offered', () => {
  const row = (id: string) => ({ id, pricing: { prompt: '1', completion: '1' } });
  const old = catalogOf({}, [chat('a', [row('anthropic/claude-opus-4.5'), row('anthropic/claude-opus-4.8')])]);
  const latest = old.find('~anthropic/claude-opus-latest')!;
  assert.deepEqual([latest.id, latest.latest], ['anthropic/claude-opus-4.8', true]);
  assert.equal(old.find('anthropic/claude-opus-4.8')!.latest, undefined);
  assert.equal(old.find('~anthropic/claude-haiku-latest'), undefined);
  assert.equal(old.find('~anthropic/claude-opus-latest:nitro')!.variant, 'nitro');
  assert.equal(
    catalogOf({ ANTHROPIC_API_KEY: 'k' }).find('~anthropic/claude-opus-latest')!.id,
    'anthropic/claude-opus-5.5',
  );
});

test('without any provider the simulated models are served', () => {
  const catalog = catalogOf({});
  assert.deepEqual(
    catalog.models.map(({ id }) => id).filter((id) => id.startsWith('simulated/')),
    ['simulated/echo', 'simulated/script', 'simulated/speech', 'simulated/transcription', 'simulated/video'],
  );
});

test('a catalog cannot be modified', () => {
  const catalog = catalogOf({ OPENAI_API_KEY: 'k' }, [
    chat('a', [{ id: 'm/x', pricing: { prompt: '1', completion: '1' } }]),
  ]);
  const model = catalog.find('m/x')!;
  const open = catalog.find('openai/gpt-4o')!;
  const [listed, other] = [model.endpoints[0]!, open.endpoints[0]!];
  const all = [
    catalog,
    catalog.models,
    model,
    model.endpoints,
    listed,
    listed.pricing,
    listed.provider,
    open,
    other,
    other.dataPolicy,
  ];
  for (const value of all) assert.ok(Object.isFrozen(value));
});
