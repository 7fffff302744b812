import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RequestFacts } from '../../formats/conversation/format.ts';
import { providersIn, type RoutingWorld, refusalIn, routeIn, routingWorld } from '../../testing/laws/routing.ts';
import { sessionKey } from './index.ts';

/** Three providers of `a/m`, one of which also has `a/other`. */
const THREE = [
  { id: 'one', name: 'Provider One', region: 'us' },
  { id: 'two', name: 'Two', models: ['a/m', 'a/other'], region: 'eu' },
  { id: 'three', name: 'Three', region: 'us' },
];

const PLACES: [string, RequestFacts['provider'], string[]][] = [
  ['with equal prices and lots, in the configured order', {}, ['one', 'two', 'three']],
  ['`order` first, then the others', { order: ['three'] }, ['three', 'one', 'two']],
  ['`order` in its own order', { order: ['three', 'two'] }, ['three', 'two', 'one']],
  ['an unknown name in `order` changes nothing', { order: ['nobody', 'two'] }, ['two', 'one', 'three']],
  ['`only`', { only: ['two', 'three'] }, ['two', 'three']],
  ['`ignore`', { ignore: ['one'] }, ['two', 'three']],
  ['`only` and `ignore`', { only: ['one', 'two'], ignore: ['one'] }, ['two']],
  ['names in any case, and display names', { only: ['TWO', 'provider one'] }, ['one', 'two']],
  ['a slug with a variant', { only: ['one/us', 'two/us'] }, ['one']],
  ['empty lists and nulls have no effect', { only: [], order: null, ignore: [] }, ['one', 'two', 'three']],
  ['`allow_fallbacks: false` leaves the first choice only', { allow_fallbacks: false }, ['one']],
  ['`allow_fallbacks: false` with an order', { order: ['three'], allow_fallbacks: false }, ['three']],
];

for (const [name, provider, expected] of PLACES) {
  test(`order of endpoints: ${name}`, () => {
    assert.deepEqual(providersIn(routingWorld(THREE), { provider }), expected);
  });
}

test('further models come after every endpoint of the previous one', () => {
  const tried = (asked: Partial<RequestFacts>) =>
    routeIn(routingWorld(THREE), asked).candidates.map(({ endpoint, rank }) => `${rank} ${endpoint.id}`);
  assert.deepEqual(tried({ fallbackModels: ['a/other'] }), ['0 one:a/m', '0 two:a/m', '0 three:a/m', '1 two:a/other']);
  assert.deepEqual(tried({ model: undefined, fallbackModels: ['a/other'] }), ['0 two:a/other']);
});

test('an endpoint in cooldown is tried last, and is still tried if it is the only one', () => {
  const world = routingWorld(THREE);
  world.health.coolDown('one:a/m', { kind: 'server', status: 500, message: '' });
  assert.deepEqual(providersIn(world, {}), ['two', 'three', 'one']);
  assert.deepEqual(providersIn(world, { provider: { only: ['one'] } }), ['one']);
  assert.deepEqual(providersIn(world, { provider: { allow_fallbacks: false } }), ['two']);
  assert.deepEqual(providersIn(world, { provider: { order: ['one'], allow_fallbacks: false } }), ['one']);
  world.clock.advance(30_001);
  assert.deepEqual(providersIn(world, {}), ['one', 'two', 'three']);
});

/** `provider model` of each candidate, in order. */
function endpointsIn(world: RoutingWorld, asked: Partial<RequestFacts>): string[] {
  return routeIn(world, asked).candidates.map(({ endpoint }) => endpoint.id);
}

const FAILED = { kind: 'server', status: 500, message: '' } as const;

test('while every endpoint of an earlier model is in cooldown, a later model with a healthy endpoint goes first', () => {
  const world = routingWorld([{ id: 'one' }, { id: 'two' }, { id: 'spare', models: ['a/other', 'a/last'] }]);
  const wish = { fallbackModels: ['a/other', 'a/last'] };
  world.health.coolDown('one:a/m', { ...FAILED, retryAfterSeconds: 600 });
  assert.deepEqual(endpointsIn(world, wish), ['two:a/m', 'spare:a/other', 'spare:a/last', 'one:a/m']);
  world.health.coolDown('two:a/m', FAILED);
  assert.deepEqual(endpointsIn(world, wish), ['spare:a/other', 'spare:a/last', 'two:a/m', 'one:a/m']);
  world.health.coolDown('spare:a/other', FAILED);
  assert.deepEqual(endpointsIn(world, wish), ['spare:a/last', 'two:a/m', 'one:a/m', 'spare:a/other']);
  world.health.coolDown('spare:a/last', FAILED);
  assert.deepEqual(endpointsIn(world, wish), ['two:a/m', 'one:a/m', 'spare:a/other', 'spare:a/last']);
  world.clock.advance(30_001);
  assert.deepEqual(endpointsIn(world, wish), ['two:a/m', 'spare:a/other', 'spare:a/last', 'one:a/m']);
});

test('a model whose only credential is in cooldown gives way to a healthy later model', () => {
  const world = routingWorld([{ id: 'one' }, { id: 'two', models: ['a/other'] }]);
  const candidate = routeIn(world, {}).candidates[0]!;
  const credential = world.credentials.choose(candidate);
  world.credentials.coolDown(credential, candidate.endpoint, { kind: 'quota', status: 402, message: '' });
  assert.deepEqual(endpointsIn(world, { fallbackModels: ['a/other'] }), ['two:a/other', 'one:a/m']);
});

test('a pinned endpoint in cooldown keeps its rank within its model and gives way to a healthy later model', () => {
  const world = routingWorld(THREE);
  world.health.coolDown('one:a/m', FAILED);
  const provider = { order: ['one'], allow_fallbacks: false };
  assert.deepEqual(endpointsIn(world, { provider }), ['one:a/m']);
  assert.deepEqual(endpointsIn(world, { provider, fallbackModels: ['a/other'] }), ['two:a/other', 'one:a/m']);
});

test('a session leads its own model only, and not while its endpoint is in cooldown', () => {
  const world = routingWorld(THREE);
  const session = { hash: 7, named: true };
  world.sessions.keep(session, 'two:a/other');
  const wish = { fallbackModels: ['a/other'] };
  assert.equal(routeIn(world, wish, { session }).candidates[0]!.rank, 0);
  for (const id of ['one', 'two', 'three']) world.health.coolDown(`${id}:a/m`, FAILED);
  assert.equal(routeIn(world, wish, { session }).candidates[0]!.endpoint.id, 'two:a/other');
});

test('after a cooldown one request probes the endpoint, and the others stay away until the probe succeeds', () => {
  const world = routingWorld(THREE);
  world.health.coolDown('one:a/m', FAILED);
  world.health.attempted('one:a/m');
  world.clock.advance(30_001);
  assert.deepEqual(providersIn(world, {}), ['one', 'two', 'three']);
  world.health.attempted('one:a/m');
  assert.deepEqual(providersIn(world, {}), ['two', 'three', 'one']);
  world.health.recovered('one:a/m');
  assert.deepEqual(providersIn(world, {}), ['one', 'two', 'three']);
  assert.equal(world.health.anyCooldown, false);
  // A probe without an outcome, such as one whose client disconnects, gives way to the next one.
  world.health.coolDown('one:a/m', FAILED);
  world.clock.advance(30_001);
  world.health.attempted('one:a/m');
  world.clock.advance(30_001);
  assert.deepEqual(providersIn(world, {}), ['one', 'two', 'three']);
});

test('an endpoint that is unhealthy over all processes is tried after healthy ones, before those in cooldown', () => {
  const world = routingWorld(THREE, {
    'one:a/m': { uptime5m: 79, requests5m: 10 },
    'two:a/m': { uptime5m: 0, requests5m: 9 },
  });
  assert.deepEqual(providersIn(world, {}), ['two', 'three', 'one']);
  world.health.coolDown('three:a/m', { kind: 'server', status: 500, message: '' });
  assert.deepEqual(providersIn(world, {}), ['two', 'one', 'three']);
});

test('no request tries more endpoints than the limit', () => {
  assert.deepEqual(providersIn({ ...routingWorld(THREE), maxCandidates: 2 }, {}), ['one', 'two']);
});

test('an unknown model is 400 with `availability`, also as a fallback', () => {
  for (const asked of [{ model: 'a/none' }, { fallbackModels: ['a/none'] }]) {
    const error = refusalIn(routingWorld(THREE), asked);
    assert.equal(error.status, 400);
    assert.equal(error.details.availability?.['code'], 'model_not_found');
    assert.match(error.message, /a\/none/);
  }
  assert.equal(refusalIn(routingWorld(THREE), { model: undefined }).details.path, 'model');
});

const PRICE = (prompt: string, completion: string, more: object = {}) => ({ pricing: { prompt, completion, ...more } });

/** Each provider differs from `good` in one property. */
const VARIED = [
  {
    id: 'good',
    ...PRICE('0.000001', '0.000002', { request: '0.001', image: '0.002', audio: '0.00001' }),
    data_policy: { zdr: true, trains: false, publishes: false, retains_for_safety: false },
    quantization: 'fp8',
    context_length: 100_000,
    input_modalities: ['text', 'image'],
    output_modalities: ['text', 'image'],
    supported_parameters: ['tools', 'structured_outputs', 'response_format', 'temperature', 'max_tokens'],
  },
  {
    id: 'poor',
    ...PRICE('0.000002', '0.000004', { request: '0.002', image: '0.004', audio: '0.00002' }),
    data_policy: { zdr: false, trains: true, publishes: true, retains_for_safety: true },
    quantization: 'int4',
    context_length: 1_000,
    input_modalities: ['text'],
    output_modalities: ['text'],
    supported_parameters: ['seed'],
  },
  { id: 'unknown' },
];

const needs = { inputs: [], outputs: [], features: [], parameters: [] };

/** The endpoints that the rule leaves, and its name in the error when none is left. */
const RULES: [string, Partial<RequestFacts>, string[], string][] = [
  ['zdr', { provider: { zdr: true } }, ['good'], 'data_policy:zdr'],
  ['data_collection', { provider: { data_collection: 'deny' } }, ['good'], 'data_policy:training'],
  ['quantizations', { provider: { quantizations: ['fp8'] } }, ['good'], 'quantization'],
  ['quantizations', { provider: { quantizations: ['unknown'] } }, ['unknown'], 'quantization'],
  ['a prompt price', { provider: { max_price: { prompt: '1' } } }, ['good'], 'max_price'],
  ['a completion price', { provider: { max_price: { completion: 3.5 } } }, ['good'], 'max_price'],
  ['a request price', { provider: { max_price: { request: 0.001 } } }, ['good'], 'max_price'],
  ['an image price', { provider: { max_price: { image: '0.003' } } }, ['good'], 'max_price'],
  ['an audio price', { provider: { max_price: { audio: '0.00001' } } }, ['good'], 'max_price'],
  ['images in the prompt', { needs: { ...needs, inputs: ['image'] } }, ['good', 'unknown'], 'feature:image_input'],
  ['images in the answer', { needs: { ...needs, outputs: ['image'] } }, ['good', 'unknown'], 'feature:image_output'],
  ['tools', { needs: { ...needs, features: ['tools'] } }, ['good', 'unknown'], 'feature:tools'],
  [
    'structured outputs',
    { needs: { ...needs, features: ['structured_outputs'] } },
    ['good', 'unknown'],
    'feature:structured_outputs',
  ],
  [
    'required parameters',
    {
      provider: { require_parameters: true },
      needs: { ...needs, parameters: [['temperature'], ['max_completion_tokens', 'max_tokens']] },
    },
    ['good'],
    'require_parameters',
  ],
];

for (const [name, asked, left, rule] of RULES) {
  test(`${name}: ${JSON.stringify(asked)} leaves ${left}, and the refusal names the rule for each endpoint`, () => {
    const world = routingWorld(VARIED);
    assert.deepEqual(providersIn(world, asked).toSorted(), left);
    const others = VARIED.filter(({ id }) => !left.includes(id));
    const error = refusalIn(routingWorld(others), asked);
    assert.equal(error.status, 404);
    assert.deepEqual(error.details.availability?.['excluded_by'], [rule]);
    assert.equal(
      error.details.availability?.['code'],
      rule.startsWith('data_policy') ? 'privacy_restricted' : 'constraint_filtered',
    );
    assert.deepEqual(
      error.details.metadata?.['excluded_endpoints'],
      others.map(({ id }) => ({ provider: id, model: 'a/m', excluded_by: [rule] })),
    );
  });
}

test('an error distinguishes the offerings of one endpoint', () => {
  const pricing = { prompt: '0.000001', completion: '0.000001' };
  const world = routingWorld([{ id: 'one', pricing, service_tiers: { priority: { pricing } } }]);
  const error = refusalIn(world, { provider: { max_price: { prompt: 0.1 } } });
  const excluded = { provider: 'one', model: 'a/m', excluded_by: ['max_price'] };
  assert.deepEqual(error.details.metadata?.['excluded_endpoints'], [
    excluded,
    { ...excluded, service_tier: 'priority' },
  ]);
});

test('a prompt that cannot fit excludes an endpoint; one that may not fit only lowers its rank', () => {
  const world = routingWorld([
    { id: 'small', context_length: 1_000 },
    { id: 'large', context_length: 100_000 },
  ]);
  assert.deepEqual(providersIn(world, {}, { promptBytes: 3_000 }), ['small', 'large']);
  assert.deepEqual(providersIn(world, {}, { promptBytes: 5_000 }), ['large', 'small']);
  assert.deepEqual(providersIn(world, {}, { promptBytes: 20_000 }), ['large']);
  const error = refusalIn(world, {}, { promptBytes: 2_000_000 });
  assert.deepEqual(
    [error.status, error.type, error.details.availability?.['excluded_by']],
    [400, 'context_length_exceeded', ['context_length']],
  );
  // If a list excludes the endpoint that has the context, the list is the reason.
  const listed = refusalIn(world, { provider: { only: ['none'] } }, { promptBytes: 20_000 });
  assert.equal(listed.status, 404);
  // Bytes of inline media say nothing about tokens.
  assert.deepEqual(providersIn(world, { media: { images: 1, documents: 0 } }, { promptBytes: 2_000_000 }), [
    'small',
    'large',
  ]);
});

test('max_price is compared with the price of a long prompt', () => {
  const long = { overrides: [{ min_prompt_tokens: 1_000, prompt: '0.000002' }] };
  const world = routingWorld([
    { id: 'one', ...PRICE('0.000001', '0.000001', long) },
    { id: 'two', ...PRICE('0.000001', '0.000001') },
  ]);
  const asked = { provider: { max_price: { prompt: 1 } } };
  assert.deepEqual(providersIn(world, asked, { promptBytes: 1_000 }), ['one', 'two']);
  assert.deepEqual(providersIn(world, asked, { promptBytes: 8_000 }), ['two']);
});

test('lists of the request that leave no endpoint are 404, privacy 404 privacy_restricted; lists are reported first', () => {
  const world = routingWorld(THREE);
  const list = refusalIn(world, { provider: { only: ['nobody'], zdr: true } });
  assert.equal(list.status, 404);
  assert.equal(list.details.path, 'provider.only');
  assert.match(list.message, /no allowed providers/);
  assert.deepEqual(list.details.availability?.['excluded_by'], ['allowed_providers', 'data_policy:zdr']);
  assert.equal(refusalIn(world, { provider: { ignore: ['one', 'two', 'three'] } }).details.path, 'provider.ignore');
  const privacy = refusalIn(world, { provider: { only: ['one'], zdr: true, quantizations: ['fp8'] } });
  assert.equal(privacy.status, 404);
  assert.equal(privacy.details.path, 'provider.zdr');
  assert.equal(privacy.details.availability?.['code'], 'privacy_restricted');
});

const account = (policy: Partial<RoutingWorld['accountPolicy']>): RoutingWorld => {
  const world = routingWorld([
    { id: 'strict', data_policy: { zdr: true, trains: false, publishes: false, retains_for_safety: false } },
    { id: 'safety', data_policy: { zdr: true, trains: false, publishes: false, retains_for_safety: true } },
    { id: 'keeps', data_policy: { zdr: false, trains: false, publishes: false } },
    { id: 'publishes', data_policy: { zdr: false, trains: false, publishes: true } },
    { id: 'trains', data_policy: { zdr: false, trains: true, publishes: false } },
    { id: 'unknown' },
  ]);
  return { ...world, accountPolicy: { ...world.accountPolicy, ...policy } };
};

test('the account settings apply to every request, and unknown policies of an endpoint count as the worst', () => {
  const left = (policy: Partial<RoutingWorld['accountPolicy']>, provider: RequestFacts['provider'] = {}) =>
    providersIn(account(policy), { provider });
  assert.equal(left({}).length, 6);
  assert.deepEqual(left({ zdr: true }), ['strict', 'safety']);
  assert.deepEqual(left({ zdr: true }, { zdr: false }), ['strict', 'safety']);
  assert.deepEqual(left({ allowSafetyRetention: false }, { zdr: true }), ['strict']);
  assert.deepEqual(left({ allowTraining: false }), ['strict', 'safety', 'keeps', 'publishes']);
  assert.deepEqual(left({ allowPublication: false }), ['strict', 'safety', 'keeps', 'trains']);
  assert.deepEqual(left({}, { data_collection: 'deny' }), ['strict', 'safety', 'keeps']);
  const error = refusalIn(account({ zdr: true }), { provider: { only: ['unknown'] } });
  assert.equal(error.details.availability?.['code'], 'privacy_restricted');
  assert.equal(error.details.path, undefined);
});

test('a session goes to one endpoint in every process, stays where it was answered, leaves in a cooldown', () => {
  const priced = ['one', 'two', 'three', 'four'].map((id) => ({ id, ...PRICE('0.000001', '0.000001') }));
  const world = { ...routingWorld(priced), random: Math.random };
  const other = { ...routingWorld(priced), random: Math.random };
  const keyOf = (id: string) =>
    sessionKey({ keyId: 'k', model: 'a/m', sessionId: id, cacheKey: undefined, body: Buffer.alloc(0) })!;
  const homes = new Set<string>();
  for (let number = 0; number < 50; number++) {
    const session = keyOf(`session ${number}`);
    const order = providersIn(world, {}, { session });
    assert.deepEqual(providersIn(other, {}, { session }), order);
    homes.add(order[0]!);
  }
  assert.equal(homes.size, 4);
  const session = keyOf('mine');
  const order = providersIn(world, {}, { session });
  world.sessions.keep(session, `${order[2]}:a/m`);
  const [first, second, third, fourth] = order;
  assert.deepEqual(providersIn(world, {}, { session }), [third, first, second, fourth]);
  assert.deepEqual(providersIn(world, { provider: { sort: 'price' } }, { session })[0], third);
  assert.deepEqual(providersIn(world, { provider: { order: [first!] } }, { session })[0], first);
  assert.deepEqual(providersIn(world, { provider: { ignore: [third!] } }, { session }), [first, second, fourth]);
  world.health.coolDown(`${third}:a/m`, { kind: 'server', status: 500, message: '' });
  assert.equal(providersIn(world, {}, { session })[0], first);
  world.clock.advance(31_000);
  assert.equal(providersIn(world, {}, { session })[0], third);
  world.sessions.release(session, `${third}:a/m`);
  assert.equal(providersIn(world, {}, { session })[0], first);
});

test('sessions expire after an idle hour, and their number is limited', () => {
  const world = routingWorld(THREE);
  for (let hash = 0; hash < 30_000; hash++) world.sessions.keep({ hash, named: true }, 'one:a/m');
  assert.equal(world.sessions.size, 20_000);
  assert.equal(world.sessions.endpointOf({ hash: 0, named: true }), undefined);
  assert.equal(world.sessions.endpointOf({ hash: 29_999, named: true }), 'one:a/m');
  world.clock.advance(60 * 60_000 + 1);
  assert.equal(world.sessions.endpointOf({ hash: 29_999, named: true }), undefined);
});

test('a session is identified by its id, its cache key, or the beginning of a prompt long enough to be cached', () => {
  const body = Buffer.from(`{"messages":"${'x'.repeat(3_000)}"}`);
  const key = (more: object, bytes = body) =>
    sessionKey({ keyId: 'k', model: 'a/m', sessionId: null, cacheKey: undefined, body: bytes, ...more });
  assert.deepEqual(key({ sessionId: 's' }), key({ sessionId: 's', cacheKey: 'c' }, Buffer.from('other')));
  assert.notDeepEqual(key({ sessionId: 's' }), key({ sessionId: 's', keyId: 'another' }));
  assert.notDeepEqual(key({ sessionId: 's' }), key({ sessionId: 's', model: 'a/another' }));
  assert.equal(key({ cacheKey: 'c' })?.named, true);
  assert.deepEqual(key({}), key({}, Buffer.concat([body, Buffer.from('and so on')])));
  assert.equal(key({})?.named, false);
  assert.equal(key({}, Buffer.from('{}')), undefined);
});

test('configured fallbacks come after the endpoints of a request that names one model, unless it excludes fallbacks', () => {
  const world = routingWorld(THREE);
  world.fallbacksOf = (id) => (id === 'a/m' ? ['a/unknown', 'a/other', 'a/m'] : []);
  const usual = ['one:a/m', 'two:a/m', 'three:a/m'];
  assert.deepEqual(endpointsIn(world, {}), [...usual, 'two:a/other']);
  assert.equal(routeIn(world, {}).strategy, 'fallback');
  assert.deepEqual(endpointsIn(world, { provider: { allow_fallbacks: false } }), ['one:a/m']);
  assert.deepEqual(endpointsIn(world, { fallbackModels: ['a/m'] }), [...usual, ...usual]);
  assert.deepEqual(endpointsIn(world, { model: 'a/other' }), ['two:a/other']);
  // A model that no endpoint may serve is refused, as without fallbacks.
  assert.equal(refusalIn(world, { provider: { only: ['nobody'] } }).status, 404);
});
