import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import type { Model } from '../../../catalog/index.ts';
import type { Fields } from '../../../formats/conversation/fields.ts';
import type { Offer } from '../../routing/router-models.ts';
import { ROUTERS } from './index.ts';
import { allowed } from './patterns.ts';
import type { RouterQuestion } from './router.ts';

const offer = (id: string, price: number): Offer => ({
  model: { id, name: id, endpoints: [] } as Model,
  price,
  promptPrice: price * 1000,
});
/** Ten models, `acme/m1` the cheapest. */
const TEN = Array.from({ length: 10 }, (_, n) => offer(`acme/m${n + 1}`, (n + 1) / 1000));
const router = (slug: string) => ROUTERS.find((each) => each.slug === slug)!;

function choose(slug: string, settings: Fields = {}, more: Partial<RouterQuestion> = {}): string[] {
  const question = {
    offers: TEN,
    settings,
    score: () => undefined,
    demanding: false,
    continuesStep: false,
    previousModel: undefined,
    random: () => 0,
    ...more,
  };
  return router(slug)
    .choose(question)
    .offers.map(({ model }) => model.id.replace('acme/', ''));
}

test('a cost tier is a fifth of the prices; without a setting it is the cheapest', () => {
  const tiers = {
    low: ['m1', 'm2'],
    medium: ['m3', 'm4'],
    high: ['m5', 'm6'],
    xhigh: ['m7', 'm8'],
    max: ['m9', 'm10'],
  };
  for (const [cost_tier, models] of Object.entries(tiers)) {
    for (const slug of ['svc/auto', 'svc/auto-beta', 'svc/jev']) {
      assert.deepEqual(choose(slug, { cost_tier }).slice(0, 2).toSorted(), models.toSorted(), `${slug} ${cost_tier}`);
    }
  }
  assert.deepEqual(choose('svc/auto').slice(0, 2), ['m1', 'm2']);
  const numbers: [number, string][] = [
    [10, 'm1'],
    [9, 'm1'],
    [7, 'm3'],
    [5, 'm5'],
    [3, 'm7'],
    [1, 'm9'],
    [0, 'm9'],
  ];
  for (const [cost_quality_tradeoff, first] of numbers) {
    assert.equal(choose('svc/auto', { cost_quality_tradeoff })[0], first, String(cost_quality_tradeoff));
  }
  assert.equal(choose('svc/auto', { cost_quality_tradeoff: 10, cost_tier: 'max' })[0], 'm9');
});

test('within a tier the configured quality decides, then the release', () => {
  const score = (id: string) => (id === 'acme/m2' ? 0.9 : id === 'acme/m1' ? 0.2 : undefined);
  assert.deepEqual(choose('svc/auto', {}, { score }).slice(0, 2), ['m2', 'm1']);
  const newer = { ...TEN[1]!, model: { ...TEN[1]!.model, facts: { created: 5 } } as Model };
  assert.deepEqual(choose('svc/auto', {}, { offers: [TEN[0]!, newer, ...TEN.slice(2)] }).slice(0, 2), ['m2', 'm1']);
});

test('every offer that the patterns leave is kept, once, and exclusion wins', () => {
  const pattern = fc.constantFrom('*', 'acme/*', '*/m1*', 'acme/m3', 'acme/m*', 'other/*', '*m1', 'a*e/m*2', '**', '');
  fc.assert(
    fc.property(fc.array(pattern, { maxLength: 4 }), fc.array(pattern, { maxLength: 2 }), (allow, exclude) => {
      const asRegex = (each: string) => new RegExp(`^${each.replaceAll('*', '.*')}$`);
      const isLeft = (id: string) =>
        (allow.length === 0 || allow.some((each) => asRegex(each).test(id))) &&
        !exclude.some((each) => asRegex(each).test(id));
      const left = TEN.map(({ model }) => model.id).filter(isLeft);
      assert.deepEqual(
        allowed(TEN, allow, exclude).map(({ model }) => model.id),
        left,
      );
      const settings = { allowed_models: allow, excluded_models: exclude };
      assert.deepEqual(choose('svc/auto', settings).toSorted(), left.map((id) => id.replace('acme/', '')).toSorted());
    }),
  );
  // The list of jev is ignored if it matches nothing.
  assert.equal(choose('svc/jev', { models: ['other/*'] }).length, 10);
  assert.deepEqual(choose('svc/jev', { models: ['acme/m5'], allowed_models: ['acme/m6'] }).toSorted(), ['m5', 'm6']);
  assert.deepEqual(choose('svc/jev', { excluded_models: ['acme/*'] }), []);
});

test('a pinned model is that of the last answer, if it is allowed', () => {
  const previousModel = 'acme/m7';
  assert.equal(choose('svc/auto', { pin_model: true }, { previousModel })[0], 'm7');
  assert.equal(choose('svc/auto', { pin_model: false }, { previousModel })[0], 'm1');
  assert.equal(choose('svc/auto', { pin_model: true, excluded_models: [previousModel] }, { previousModel })[0], 'm1');
});

test('pareto: the cheapest model of the tier, then better ones; none is dearer and no better than another', () => {
  const scores: Record<string, number> = {
    'acme/m2': 0.2,
    'acme/m4': 0.7,
    'acme/m5': 0.4,
    'acme/m6': 0.7,
    'acme/m9': 0.95,
  };
  const score = (id: string) => scores[id];
  assert.deepEqual(choose('svc/pareto-code', {}, { score }), ['m4', 'm9']);
  assert.deepEqual(choose('svc/pareto-code', { min_coding_score: 0.5 }, { score }), ['m4', 'm9']);
  assert.deepEqual(choose('svc/pareto-code', { min_coding_score: 0.1 }, { score }), ['m2', 'm4', 'm9']);
  assert.deepEqual(choose('svc/pareto-code', { max_price: 5 }, { score }), ['m4']);
  assert.deepEqual(choose('svc/pareto-code', { max_price: 3 }, { score }), []);
  // Without any score the price stands in for it.
  assert.deepEqual(choose('svc/pareto-code'), ['m8', 'm9', 'm10']);
  assert.equal(choose('svc/pareto-code', { min_coding_score: 0 })[0], 'm1');
});

test('switchyard: each algorithm by its rule', () => {
  const score = (id: string) => (id === 'acme/m3' ? 0.9 : id === 'acme/m8' ? 0.8 : undefined);
  assert.deepEqual(choose('svc/switchyard', {}, { score }).slice(0, 2), ['m3', 'm8']);
  assert.equal(choose('svc/switchyard')[0], 'm10');
  assert.equal(choose('svc/switchyard', { algorithm: 'stage' })[0], 'm9');
  assert.equal(choose('svc/switchyard', { algorithm: 'stage' }, { continuesStep: true })[0], 'm3');
  assert.equal(choose('svc/switchyard', { algorithm: 'auto' })[0], 'm1');
  assert.equal(choose('svc/switchyard', { algorithm: 'auto' }, { demanding: true })[0], 'm5');
  assert.equal(choose('svc/switchyard', { algorithm: 'composite' }, { score })[0], 'm3');
  assert.deepEqual(choose('svc/switchyard', { algorithm: 'passthrough' }), []);
  const random = choose('svc/switchyard', { algorithm: 'random' }, { random: () => 0.3 });
  assert.equal(new Set(random).size, 10);
});

test('the free router takes only models that cost nothing', () => {
  assert.deepEqual(choose('svc/free'), []);
  assert.deepEqual(choose('svc/free', {}, { offers: [...TEN, offer('acme/gift', 0)] }), ['gift']);
});
