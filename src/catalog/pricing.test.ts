import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Prices, Pricing } from '../base/config.ts';
import { parsePrice } from '../base/money.ts';
import type { Usage } from '../formats/conversation/conversation.ts';
import { ceilingOf, classesOf, priceOf } from './pricing.ts';

function usage(counts: Partial<Usage>): Usage {
  return { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0, ...counts };
}

/** USD per million tokens, as in price lists. */
function perMillion(prices: { prompt: string; completion: string } & Record<string, string>): Pricing {
  const entries = Object.entries(prices).map(([name, price]) => [name, parsePrice(price) / 1_000_000n]);
  return Object.fromEntries(entries) as Pricing;
}

const CLAUDE = perMillion({ prompt: '3', completion: '15', inputCacheRead: '0.3', inputCacheWrite: '3.75' });

test('cache creation is billed once, at its own price', () => {
  const bill = priceOf(usage({ input: 4, cacheWrite5m: 10_000, output: 500 }), CLAUDE);
  assert.deepEqual(bill, {
    promptNano: 37_512_000n,
    completionNano: 7_500_000n,
    feesNano: 0n,
    totalNano: 45_012_000n,
  });
});

test('thinking costs as much as the completion unless it has its own price', () => {
  const thought = usage({ input: 26, output: 1000, reasoning: 700 });
  const pricing = perMillion({ prompt: '0', completion: '10' });
  assert.equal(priceOf(thought, pricing).totalNano, 10_000_000n);
  const apart = { ...pricing, internalReasoning: parsePrice('0.000002') };
  assert.equal(priceOf(thought, apart).totalNano, 300n * 10_000n + 700n * 2_000n);
});

test('cache classes without a price cost as much as the prompt, and long writes as much as short ones', () => {
  const cached = usage({ cacheRead: 10, cacheWrite5m: 20, cacheWrite1h: 30 });
  assert.equal(priceOf(cached, perMillion({ prompt: '1', completion: '0' })).totalNano, 60_000n);
  const write = perMillion({ prompt: '1', completion: '0', inputCacheWrite: '2' });
  assert.equal(priceOf(cached, write).totalNano, 10_000n + 50n * 2_000n);
  const long = perMillion({ prompt: '1', completion: '0', inputCacheWrite: '2', inputCacheWrite1h: '4' });
  assert.equal(priceOf(cached, long).totalNano, 10_000n + 40_000n + 120_000n);
});

test('fees per request, image and search are added to the token cost', () => {
  const pricing = {
    ...CLAUDE,
    request: parsePrice('0.01'),
    webSearch: parsePrice('0.005'),
    image: parsePrice('0.002'),
  };
  const bill = priceOf(usage({ input: 1, webSearches: 3 }), pricing, 2);
  assert.deepEqual(bill, { promptNano: 3_000n, completionNano: 0n, feesNano: 29_000_000n, totalNano: 29_003_000n });
});

test('audio and images have their own prices and never more tokens than the total', () => {
  const pricing = perMillion({
    prompt: '1',
    completion: '2',
    audio: '10',
    audioOutput: '20',
    imageToken: '5',
    imageOutput: '30',
  });
  const media = usage({ input: 100, inputAudio: 60, inputImage: 30, output: 100, outputAudio: 50, outputImage: 40 });
  assert.equal(priceOf(media, pricing).promptNano, 10_000n + 600_000n + 150_000n);
  assert.equal(priceOf(media, pricing).completionNano, 20_000n + 1_000_000n + 1_200_000n);
  const wild = usage({ input: 10, inputAudio: 60, inputImage: 30 });
  assert.equal(priceOf(wild, pricing).totalNano, 100_000n);
});

test('prompts above a threshold, cached tokens included, have the override prices, and prompts at it do not', () => {
  const long: Pricing = {
    ...perMillion({ prompt: '1', completion: '2' }),
    overrides: [
      { minPromptTokens: 1000, prices: { prompt: parsePrice('0.000009') } },
      { minPromptTokens: 200, prices: { prompt: parsePrice('0.000002'), completion: parsePrice('0.000003') } },
    ],
  };
  const at = (input: number) => priceOf(usage({ input, cacheRead: 100, output: 1 }), long).totalNano;
  assert.equal(at(100), 200n * 1_000n + 2_000n);
  assert.equal(at(101), 201n * 2_000n + 3_000n);
  assert.equal(at(901), 1001n * 9_000n + 3_000n);
});

test('a fraction of a nano-dollar is rounded once, in the total', () => {
  const fine = { prompt: parsePrice('0.0000000003'), completion: parsePrice('0.0000000003') };
  assert.deepEqual(priceOf(usage({ input: 1, output: 1 }), fine), {
    promptNano: 0n,
    completionNano: 1n,
    feesNano: 0n,
    totalNano: 1n,
  });
});

const price = fc.bigInt({ min: 0n, max: 10n ** 15n });
const names: (keyof Prices)[] = [
  'inputCacheRead',
  'inputCacheWrite',
  'inputCacheWrite1h',
  'internalReasoning',
  'audio',
  'audioOutput',
  'imageToken',
  'imageOutput',
  'request',
  'webSearch',
];
const pricings: fc.Arbitrary<Pricing> = fc
  .tuple(price, price, fc.dictionary(fc.constantFrom(...names), price))
  .map(([prompt, completion, others]) => ({ ...others, prompt, completion }));
const count = fc.integer({ min: 0, max: 2_000_000 });
const usages: fc.Arbitrary<Usage> = fc.record({
  input: count,
  cacheRead: count,
  cacheWrite5m: count,
  cacheWrite1h: count,
  output: count,
  reasoning: count,
  inputAudio: count,
  inputImage: count,
  outputAudio: count,
  outputImage: count,
  webSearches: fc.integer({ min: 0, max: 50 }),
});

test('every token is in exactly one price class', () => {
  fc.assert(
    fc.property(usages, (any) => {
      const sum = (parts: Record<string, number>) => Object.values(parts).reduce((a, b) => a + b, 0);
      const { prompt, completion } = classesOf(any);
      assert.equal(sum(prompt), any.input + any.cacheRead + any.cacheWrite5m + any.cacheWrite1h);
      assert.equal(sum(completion), any.output);
      for (const tokens of [...Object.values(prompt), ...Object.values(completion)]) assert.ok(tokens >= 0);
    }),
  );
});

test('parts of a bill are not negative, sum to the total, and the rounding error is below half a nano-dollar', () => {
  fc.assert(
    fc.property(usages, pricings, (any, pricing) => {
      const bill = priceOf(any, pricing);
      assert.equal(bill.promptNano + bill.completionNano + bill.feesNano, bill.totalNano);
      for (const part of Object.values(bill)) assert.ok(part >= 0n);
      // Computes the sum differently: every price times a billion is an exact number of nano-dollars.
      const billion = Object.fromEntries(
        Object.entries(pricing).map(([name, value]) => [name, (value as bigint) * 10n ** 9n]),
      );
      const exact = priceOf(any, billion as unknown as Pricing).totalNano;
      const off = bill.totalNano * 10n ** 9n - exact;
      assert.ok(off <= 500_000_000n && off >= -500_000_000n, String(off));
    }),
  );
});

test('if every class costs the same, a bill is that price times the tokens', () => {
  fc.assert(
    fc.property(usages, price, (any, each) => {
      const tokens = any.input + any.cacheRead + any.cacheWrite5m + any.cacheWrite1h + any.output;
      const nano = each * 10n ** 9n;
      assert.equal(priceOf(any, { prompt: nano, completion: nano }).totalNano, BigInt(tokens) * each);
    }),
  );
});

test('no token costs more than the ceiling', () => {
  fc.assert(
    fc.property(usages, pricings, pricings, count, (any, pricing, other, minPromptTokens) => {
      const tiered: Pricing = {
        ...pricing,
        overrides: [{ minPromptTokens, prices: { prompt: other.prompt, completion: other.completion } }],
      };
      const ceiling = ceilingOf(tiered);
      const prompt = BigInt(any.input + any.cacheRead + any.cacheWrite5m + any.cacheWrite1h) * ceiling.prompt;
      const fees = ceiling.request + BigInt(any.webSearches ?? 0) * ceiling.webSearch;
      const bound = prompt + BigInt(any.output) * ceiling.completion + fees;
      assert.ok(priceOf(any, tiered).totalNano * 10n ** 9n <= bound + 10n ** 9n);
    }),
  );
});

const PICTURES: Pricing = {
  prompt: 0n,
  completion: 0n,
  outputImages: [
    { per: 'image', price: parsePrice('0.04'), variant: [] },
    { per: 'image', price: parsePrice('0.08'), variant: ['high'] },
    { per: 'image', price: parsePrice('0.12'), variant: ['high', '1536x1024'] },
  ],
};
const NOTHING = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0 };

test('an image has the price of its most specific matching variant', () => {
  const cost = (...words: string[]) => priceOf({ ...NOTHING, outputImages: 3 }, PICTURES, 0, words).totalNano;
  assert.equal(cost('auto'), 120_000_000n);
  assert.equal(cost('high', '1K'), 240_000_000n);
  assert.equal(cost('1536x1024', 'high'), 360_000_000n);
  assert.equal(cost('1536x1024', 'low'), 120_000_000n);
});

test('an image without a matching variant has the highest price, within the ceiling', () => {
  const [, , dear] = PICTURES.outputImages!;
  const narrow = { ...PICTURES, outputImages: [{ ...dear!, variant: ['low'] }, dear!] };
  assert.equal(priceOf({ ...NOTHING, outputImages: 1 }, narrow, 0, ['medium']).totalNano, 120_000_000n);
  assert.equal(ceilingOf(PICTURES).outputImage, parsePrice('0.12'));
  assert.equal(ceilingOf(PICTURES).outputMegapixel, 0n);
});

test('an image charged by area costs each started megapixel', () => {
  const byArea: Pricing = { ...PICTURES, outputImages: [{ per: 'megapixel', price: parsePrice('0.03'), variant: [] }] };
  assert.equal(priceOf({ ...NOTHING, outputImages: 2, outputMegapixels: 5 }, byArea).totalNano, 150_000_000n);
});
