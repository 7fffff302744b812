import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pricing } from '../base/config.ts';
import { parsePrice } from '../base/money.ts';
import { KINDS } from '../providers/index.ts';
import { atBatchPrice } from './batch-price.ts';
import type { Endpoint } from './catalog.ts';

const openai = KINDS.find(({ id }) => id === 'openai')!;
const price = parsePrice;
const PRICING: Pricing = {
  prompt: price('0.000003'),
  completion: price('0.000015'),
  inputCacheRead: price('0.0000003'),
  request: price('0.001'),
  webSearch: price('0.01'),
  overrides: [{ minPromptTokens: 200_000, prices: { prompt: price('0.000006') } }],
};
const endpoint = (more: Partial<Endpoint>) => ({ provider: { kind: openai }, pricing: PRICING, ...more }) as Endpoint;

test('tokens cost half in a batch, long prompts too, and fees cost as much as elsewhere', () => {
  assert.deepEqual(atBatchPrice(endpoint({})).pricing, {
    prompt: price('0.0000015'),
    completion: price('0.0000075'),
    inputCacheRead: price('0.00000015'),
    request: price('0.001'),
    webSearch: price('0.01'),
    overrides: [{ minPromptTokens: 200_000, prices: { prompt: price('0.000003') } }],
  });
});

test('a configured batch price replaces the discount, and an unknown price stays unknown', () => {
  const batchPricing = { prompt: 1n, completion: 2n };
  assert.deepEqual(atBatchPrice(endpoint({ batchPricing })).pricing, batchPricing);
  assert.equal(atBatchPrice(endpoint({ pricing: null })).pricing, null);
});
