import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { EndpointFigures } from '../../catalog/index.ts';
import { NO_FIGURES } from '../../catalog/index.ts';
import type { RequestFacts } from '../../formats/conversation/format.ts';
import type { ProviderPreferences, SortMetric } from '../../formats/conversation/preferences.ts';
import { askedWith, catalogFrom, providersIn, type RoutedProvider, routingWorld } from '../../testing/laws/routing.ts';
import { samples } from '../../testing/laws/samples.ts';
import { inOrder, type Live, type Wanted, weightedKey } from './order.ts';
import { type PreparedEndpoint, prepare } from './prepared.ts';
import { type AccountPolicy, rulesFor } from './rules.ts';

const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const usd = fc.integer({ min: 0, max: 5 }).map((price) => (price / 1e6).toFixed(6));

const provider = fc.record({
  pricing: some(fc.record({ prompt: usd, completion: usd })),
  data_policy: some(fc.record({ zdr: fc.boolean(), trains: fc.boolean(), publishes: fc.boolean() })),
  quantization: some(fc.constantFrom('fp8', 'int4')),
  region: some(fc.constantFrom('eu', 'us')),
  context_length: some(fc.integer({ min: 1, max: 200 })),
  input_modalities: some(fc.constantFrom(['text'], ['text', 'image'])),
  supported_parameters: some(fc.constantFrom(['tools'], ['tools', 'temperature'], ['seed'])),
});

const providers: fc.Arbitrary<RoutedProvider[]> = fc
  .array(provider, { minLength: 1, maxLength: 8 })
  .map((list) => list.map((one, index) => ({ ...(JSON.parse(JSON.stringify(one)) as object), id: `p${index}` })));

const slugs = fc.array(fc.constantFrom('p0', 'p1', 'p2', 'P3', 'p0/eu', 'p1/fp8', 'nobody'), { maxLength: 3 });

/** Each member sets one preference. */
const preferences: fc.Arbitrary<ProviderPreferences> = fc.record(
  {
    only: slugs,
    ignore: slugs,
    zdr: fc.boolean(),
    data_collection: fc.constantFrom('allow' as const, 'deny' as const),
    quantizations: fc.constantFrom(['fp8'], ['int4', 'unknown'], []),
    max_price: fc.record({ prompt: fc.integer({ min: 0, max: 5 }), completion: fc.integer({ min: 0, max: 5 }) }),
    require_parameters: fc.boolean(),
  },
  { requiredKeys: [] },
);

const needs: fc.Arbitrary<RequestFacts['needs']> = some(
  fc.record({
    inputs: fc.constantFrom([], ['image']),
    outputs: fc.constant([]),
    features: fc.constantFrom([], ['tools']),
    parameters: fc.constantFrom([], [['temperature']]),
  }),
);

const asked = fc.record({ provider: preferences, needs }).map((one) => askedWith(one as Partial<RequestFacts>));
const policy = fc.record({
  zdr: fc.boolean(),
  allowTraining: fc.boolean(),
  allowPublication: fc.boolean(),
  allowSafetyRetention: fc.boolean(),
});
const bytes = fc.integer({ min: 0, max: 3_000 });

const preparedFrom = (list: readonly RoutedProvider[]) => prepare(catalogFrom(list).find('a/m')!);
const ids = (list: readonly PreparedEndpoint[]) => list.map(({ endpoint }) => endpoint.id);

test('the order in which rules are applied does not matter', () => {
  fc.assert(
    fc.property(providers, asked, bytes, policy, fc.infiniteStream(fc.nat()), (list, request, size, account, order) => {
      const all = preparedFrom(list);
      const rules = rulesFor(request, size, account);
      const shuffled = rules.map((rule) => ({ rule, at: order.next().value })).sort((a, b) => a.at - b.at);
      const left = rules.reduce((some, rule) => some.filter((one) => rule.keeps(one)), all);
      const also = shuffled.reduce((some, { rule }) => some.filter((one) => rule.keeps(one)), all);
      assert.deepEqual(ids(also), ids(left));
    }),
    { numRuns: samples(200) },
  );
});

test('an additional preference never brings an endpoint back', () => {
  const kept = (list: readonly PreparedEndpoint[], request: RequestFacts, size: number, account: AccountPolicy) => {
    const rules = rulesFor(request, size, account);
    return new Set(ids(list.filter((one) => rules.every((rule) => rule.keeps(one)))));
  };
  fc.assert(
    fc.property(providers, asked, preferences, bytes, policy, (list, request, more, size, account) => {
      const all = preparedFrom(list);
      // An existing list is not replaced: that would be another preference, not an additional one.
      const both = { ...request, provider: { ...more, ...request.provider } };
      const before = kept(all, request, size, account);
      for (const id of kept(all, both, size, account)) assert.ok(before.has(id));
      for (const id of kept(all, request, size, { ...account, zdr: true })) assert.ok(before.has(id) || account.zdr);
    }),
    { numRuns: samples(200) },
  );
});

const figures: fc.Arbitrary<EndpointFigures> = fc
  .record({
    latencyMs: fc.option(fc.integer({ min: 1, max: 4 }).map((p) => ({ p50: p, p75: p, p90: p, p99: p }))),
    throughput: fc.option(fc.integer({ min: 1, max: 4 }).map((p) => ({ p50: p, p75: p, p90: p, p99: p }))),
    uptime30m: fc.option(fc.integer({ min: 0, max: 100 })),
    toolCalls1d: fc.integer({ min: 0, max: 100 }),
    invalidToolCalls1d: fc.integer({ min: 0, max: 10 }),
  })
  .map((some) => ({ ...NO_FIGURES, ...some, invalidToolCalls1d: Math.min(some.invalidToolCalls1d, some.toolCalls1d) }));

const wanted: fc.Arbitrary<Wanted> = fc.record({
  order: slugs,
  sort: some(fc.constantFrom<SortMetric>('price', 'throughput', 'latency', 'exacto')),
  tools: fc.boolean(),
  minThroughput: fc.option(fc.integer({ min: 0, max: 5 })),
  maxLatency: fc.option(fc.record({ p50: fc.double({ min: 0, max: 0.005, noNaN: true }) })),
  promptTokens: fc.integer({ min: 0, max: 300 }),
});

test('every sort is a total order that loses no endpoint, does not depend on the previous order and keeps ties', () => {
  fc.assert(
    fc.property(
      providers,
      wanted,
      fc.array(figures, { minLength: 8, maxLength: 8 }),
      fc.array(fc.constantFrom(0, 1, 2), { minLength: 8, maxLength: 8 }),
      fc.array(fc.constantFrom(0.25, 0.5), { minLength: 8, maxLength: 8 }),
      (list, wish, known, cooldowns, chances) => {
        const all = preparedFrom(list);
        const live: Live = {
          figures: (id) => known[Number(id.slice(1, id.indexOf(':')))]!,
          cooldownMs: ({ index }) => cooldowns[index]!,
          tier: () => 0,
          fraction: (id) => chances[Number(id.slice(1, id.indexOf(':')))]!,
        };
        const sorted = inOrder(all, wish, live);
        assert.deepEqual(ids(sorted).toSorted(), ids(all).toSorted());
        assert.deepEqual(ids(inOrder(sorted, wish, live)), ids(sorted));
        const twins = all.flatMap((one) => [one, { ...one, twin: true }]);
        const pairs = inOrder(twins, wish, live) as readonly (PreparedEndpoint & { twin?: boolean })[];
        assert.deepEqual(ids(pairs.filter(({ twin }) => !twin)), ids(sorted));
        const seen = new Set<string>();
        for (const { endpoint, twin } of pairs) {
          assert.equal(twin === true, seen.has(endpoint.id));
          seen.add(endpoint.id);
        }
        assert.ok(sorted.every(({ index }, at) => at === 0 || cooldowns[sorted[at - 1]!.index]! <= cooldowns[index]!));
      },
    ),
    { numRuns: samples(200) },
  );
});

/** A generator that is good enough for tests of its distribution, and repeatable. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

test('endpoints come first in proportion to the inverse square of their price, and so do the others after them', () => {
  const price = (prompt: string) => ({ pricing: { prompt, completion: prompt } });
  const world = {
    ...routingWorld([
      { id: 'one', ...price('0.000001') },
      { id: 'two', ...price('0.000002') },
      { id: 'three', ...price('0.000003') },
      { id: 'unknown' },
    ]),
    random: chance(42),
  };
  const runs = 20_000;
  const firsts = new Map<string, number>();
  let oneThenTwo = 0;
  for (let run = 0; run < runs; run++) {
    const [first, second] = providersIn(world, {});
    firsts.set(first!, (firsts.get(first!) ?? 0) + 1);
    if (first === 'one' && second === 'two') oneThenTwo++;
  }
  // The unknown price counts as the highest known one.
  const weights = { one: 1, two: 1 / 4, three: 1 / 9, unknown: 1 / 9 };
  const total = 1 + 1 / 4 + 2 / 9;
  for (const [id, weight] of Object.entries(weights)) {
    const expected = weight / total;
    const deviation = Math.sqrt((expected * (1 - expected)) / runs);
    assert.ok(Math.abs(firsts.get(id)! / runs - expected) < 5 * deviation, `${id}: ${firsts.get(id)}`);
  }
  const expected = ((1 / total) * (1 / 4)) / (1 / 4 + 2 / 9);
  assert.ok(Math.abs(oneThenTwo / runs - expected) < 5 * Math.sqrt((expected * (1 - expected)) / runs));
});

test('free endpoints are tried before all others, whatever the random number', () => {
  fc.assert(
    fc.property(
      fc.double({ min: Number.MIN_VALUE, max: 1 - Number.EPSILON, noNaN: true }),
      fc.double({ min: Number.MIN_VALUE, max: 1 - Number.EPSILON, noNaN: true }),
      fc.double({ min: 1e-9, max: 1, noNaN: true }),
      (free, paid, price) => assert.ok(weightedKey(0, free) < weightedKey(price, paid)),
    ),
  );
});
