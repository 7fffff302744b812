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

test('a listed model is found by its id alone and keeps what was said of it', () => {
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

test('several providers of one model are endpoints of it, in the order of the configuration', () => {
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

test('a provider that its variable switched on serves any model of its author; of an unknown one only the name is known', () => {
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

test('names that have slashes of their own reach a router whole', () => {
  const catalog = catalogOf({ OPENROUTER_API_KEY: 'k', HF_TOKEN: 'h' });
  assert.equal(catalog.find('openrouter/anthropic/claude-opus-5')!.endpoints[0]!.upstreamId, 'anthropic/claude-opus-5');
  assert.equal(
    catalog.find('huggingface/meta-llama/Llama-3.1-8B')!.endpoints[0]!.upstreamId,
    'meta-llama/Llama-3.1-8B',
  );
});

test("a suffix that asks for a way of routing is told apart and not sent upstream as part of the model's name", () => {
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

test("a vendor's bare names reach its models, whoever offers them", () => {
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

test('a listed offering and an open one are endpoints of one model', () => {
  const catalog = catalogOf({ OPENAI_API_KEY: 'k' }, [chat('mirror', [{ id: 'openai/gpt-4o' }])]);
  assert.deepEqual(
    catalog.find('openai/gpt-4o')!.endpoints.map(({ id }) => id),
    ['mirror:openai/gpt-4o', 'openai:openai/gpt-4o'],
  );
});

test('without any provider the simulated models answer', () => {
  const catalog = catalogOf({});
  assert.deepEqual(
    catalog.models.map(({ id }) => id),
    ['simulated/echo', 'simulated/script'],
  );
});

test('nothing in a catalog can be changed', () => {
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
