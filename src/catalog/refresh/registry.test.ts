import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KINDS } from '../../providers/index.ts';
import { pricingFrom } from '../facts.ts';
import { SHIPPED_FACTS } from '../snapshot/index.ts';
import { mergeRegistry } from './registry.ts';

test('a registry changes token prices and keeps image prices, which it does not state', () => {
  const { models } = mergeRegistry({
    known: SHIPPED_FACTS.models,
    registry: {
      openai: { models: { 'gpt-image-1.5': { name: 'GPT Image 1.5', cost: { input: 6, output: 11 } } } },
      google: { models: {} },
    },
    kinds: KINDS,
    source: 'a registry of this test',
    date: '2026-12-01',
    isValid: () => true,
  });
  const priceAt = (id: string) => {
    const pricing = models.find((row) => row.id === id)?.offers[0]?.pricing;
    assert.ok(pricing, id);
    return pricingFrom(pricing);
  };
  const { prompt, completion, imageOutput } = priceAt('openai/gpt-image-1.5');
  assert.deepEqual([prompt, completion, imageOutput], [6n * 10n ** 12n, 11n * 10n ** 12n, 32n * 10n ** 12n]);
  assert.deepEqual(priceAt('recraft/recraftv4_1').outputImages, [
    { per: 'image', price: 35n * 10n ** 15n, variant: [] },
  ]);
});
