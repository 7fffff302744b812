/** The price of an endpoint in its provider's batch interface. */
import type { Prices, Pricing } from '../base/config.ts';
import type { Endpoint } from './catalog.ts';

/** Charges per request, image and search, which batch interfaces do not discount. */
const FEES: ReadonlySet<string> = new Set<keyof Prices>(['request', 'image', 'webSearch']);

/** The endpoint at its batch price. A price that is unknown stays so. */
export function atBatchPrice(endpoint: Endpoint): Endpoint {
  const { pricing, batchPricing, provider } = endpoint;
  return {
    ...endpoint,
    pricing: batchPricing ?? (pricing && discounted(pricing, provider.kind.batches?.pricePercent ?? 100)),
  };
}

function discounted(pricing: Pricing, percent: number): Pricing {
  const { overrides } = pricing;
  return {
    ...pricing,
    ...(reduced(pricing, percent) as Pick<Pricing, 'prompt' | 'completion'>),
    ...(overrides && { overrides: overrides.map((each) => ({ ...each, prices: reduced(each.prices, percent) })) }),
  };
}

function reduced(prices: Prices, percent: number): Prices {
  const entries = Object.entries(prices).filter(([, price]) => typeof price === 'bigint') as [string, bigint][];
  return Object.fromEntries(
    entries.map(([name, price]) => [name, FEES.has(name) ? price : (price * BigInt(percent)) / 100n]),
  );
}
