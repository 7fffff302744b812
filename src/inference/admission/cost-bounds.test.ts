import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Pricing } from '../../base/config.ts';
import { type Endpoint, priceOf } from '../../catalog/index.ts';
import type { RequestFacts } from '../../formats/conversation/format.ts';
import { KINDS } from '../../providers/index.ts';
import { affordableTokens, boundNano, boundOf } from './cost-bounds.ts';

const NO_USAGE = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0 };

/** A model that reads at most 1,000 tokens, so a prompt with more bytes fills its context. */
const endpointWith = (pricing: Pricing) =>
  ({
    modelId: 'test/m',
    upstreamId: 'm',
    contextLength: 1_000,
    maxCompletionTokens: 500,
    pricing,
    provider: { kind: KINDS.find(({ id }) => id === 'chat') },
  }) as unknown as Endpoint;

const asked = (more: Partial<RequestFacts>) =>
  ({ choices: 1, media: { images: 0, documents: 0 }, ...more }) as RequestFacts;

const price = fc.bigInt({ min: 0n, max: 10n ** 13n });

test('the bound of a request equals its highest possible bill, to the nano-dollar', () => {
  fc.assert(
    fc.property(price, price, price, fc.integer({ min: 1, max: 500 }), (prompt, completion, request, output) => {
      const pricing = { prompt, completion, request } as Pricing;
      const bound = boundOf(endpointWith(pricing), asked({ maxOutputTokens: output }), { bytes: 2_000 });
      const ceiling = priceOf({ ...NO_USAGE, input: 1_000, output }, pricing).totalNano;
      assert.equal(boundNano(bound, bound.maxOutputTokens), ceiling);
    }),
  );
});

test('the affordable output costs no more than the remainder, and one more token would', () => {
  fc.assert(
    fc.property(
      price,
      fc.bigInt({ min: 10n ** 10n, max: 10n ** 13n }),
      fc.bigInt({ min: 1n, max: 10n ** 9n }),
      (prompt, completion, left) => {
        const pricing = { prompt, completion } as Pricing;
        const endpoint = { ...endpointWith(pricing), maxCompletionTokens: 1_000_000_000 };
        const bound = boundOf(endpoint, asked({}), { bytes: 2_000 });
        const tokens = affordableTokens(bound, left);
        if (tokens === undefined) {
          assert.ok(boundNano(bound, 1_024) >= left);
          return;
        }
        assert.ok(boundNano(bound, tokens) <= left);
        assert.ok(boundNano(bound, tokens + 1) >= left);
      },
    ),
  );
});
