import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../base/config.ts';
import { GatewayError } from '../base/errors.ts';
import { buildCatalog } from '../catalog/index.ts';
import type { Asked } from '../formats/conversation/format.ts';
import { KINDS, providersFrom } from '../providers/index.ts';
import { TestClock } from '../testing/clock.ts';
import { Health } from './health.ts';
import { route } from './route.ts';

/** Three providers of `a/m`, one of which also has `a/other`. */
const YAML = JSON.stringify({
  providers: [
    { id: 'one', name: 'Provider One', models: ['a/m'], region: 'us' },
    { id: 'two', name: 'Two', models: ['a/m', 'a/other'], region: 'eu' },
    { id: 'three', name: 'Three', models: ['a/m'], region: 'us' },
  ].map(({ id, name, models, region }) => ({
    id,
    name,
    kind: 'chat',
    base_url: 'http://127.0.0.1:1/v1',
    models: models.map((model) => ({ id: model, upstream_id: model, region })),
  })),
});
const config = loadConfig({
  kinds: KINDS,
  env: { GATEHOUSE_CONFIG: 'a.yaml' },
  cwd: '/',
  cores: 1,
  readFile: () => YAML,
});
const catalog = buildCatalog(config.providers, providersFrom(config), KINDS);

function routed(asked: Partial<Asked>, health = new Health(new TestClock()), most = 16): string[] {
  const whole: Asked = {
    model: 'a/m',
    fallbackModels: [],
    fallbackOnRefusal: false,
    provider: {},
    stream: false,
    choices: 1,
    media: { images: 0, documents: 0 },
    ...asked,
  };
  return route(whole, catalog, health, most).candidates.map(
    ({ endpoint, rank }) => `${rank} ${endpoint.provider.id} ${endpoint.modelId}`,
  );
}

function refusal(asked: Partial<Asked>): GatewayError {
  try {
    routed(asked);
  } catch (error) {
    if (error instanceof GatewayError) return error;
  }
  assert.fail('it was routed');
}

const PLACES: [string, Asked['provider'], string[]][] = [
  ['without preferences, as configured', {}, ['one', 'two', 'three']],
  ['`order` first, the others behind', { order: ['three'] }, ['three', 'one', 'two']],
  ['`order` in its own order', { order: ['three', 'two'] }, ['three', 'two', 'one']],
  ['an unknown name in `order` changes nothing', { order: ['nobody', 'two'] }, ['two', 'one', 'three']],
  ['`only`', { only: ['two', 'three'] }, ['two', 'three']],
  ['`ignore`', { ignore: ['one'] }, ['two', 'three']],
  ['`only` and `ignore`', { only: ['one', 'two'], ignore: ['one'] }, ['two']],
  ['names in any case, and display names', { only: ['TWO', 'provider one'] }, ['one', 'two']],
  ['a slug with a variant', { only: ['one/us', 'two/us'] }, ['one']],
  ['empty lists and nulls say nothing', { only: [], order: null, ignore: [] }, ['one', 'two', 'three']],
  ['`allow_fallbacks: false` is the first choice alone', { allow_fallbacks: false }, ['one']],
  ['... also of an order', { order: ['three'], allow_fallbacks: false }, ['three']],
];

for (const [name, provider, expected] of PLACES) {
  test(`who is asked, in which order: ${name}`, () => {
    assert.deepEqual(
      routed({ provider }),
      expected.map((id) => `0 ${id} a/m`),
    );
  });
}

test('further models come after every endpoint of the one before', () => {
  assert.deepEqual(routed({ fallbackModels: ['a/other'] }), ['0 one a/m', '0 two a/m', '0 three a/m', '1 two a/other']);
  assert.deepEqual(routed({ model: undefined, fallbackModels: ['a/other'] }), ['0 two a/other']);
});

test('a resting endpoint is asked last, and alone it is still asked', () => {
  const clock = new TestClock();
  const health = new Health(clock);
  health.rest('one:a/m', { kind: 'server', status: 500, message: '' });
  assert.deepEqual(routed({}, health), ['0 two a/m', '0 three a/m', '0 one a/m']);
  assert.deepEqual(routed({ provider: { only: ['one'] } }, health), ['0 one a/m']);
  assert.deepEqual(routed({ provider: { allow_fallbacks: false } }, health), ['0 one a/m']);
  clock.advance(30_001);
  assert.deepEqual(routed({}, health), ['0 one a/m', '0 two a/m', '0 three a/m']);
});

test('no request asks more endpoints than the limit', () => {
  assert.deepEqual(routed({ fallbackModels: ['a/other'] }, undefined, 2), ['0 one a/m', '0 two a/m']);
});

test('an unknown model is 400 with `availability`, also as a fallback', () => {
  for (const asked of [{ model: 'a/none' }, { fallbackModels: ['a/none'] }]) {
    const error = refusal(asked);
    assert.equal(error.status, 400);
    assert.equal(error.details.availability?.['code'], 'model_not_found');
    assert.match(error.message, /a\/none/);
  }
  assert.equal(refusal({ model: undefined }).details.path, 'model');
});

test('lists that leave nobody are 404 and say which list', () => {
  const error = refusal({ provider: { only: ['nobody'] } });
  assert.equal(error.status, 404);
  assert.equal(error.details.path, 'provider.only');
  assert.deepEqual(error.details.availability?.['excluded_by'], ['allowed_providers']);
  assert.equal(refusal({ provider: { ignore: ['one', 'two', 'three'] } }).details.path, 'provider.ignore');
});
