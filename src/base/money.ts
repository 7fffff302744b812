/**
 * Money is integer nano-dollars inside (`Nano`, 1 USD = 10^9) and numbers in USD on the wire. Prices are finer than
 * that (a cached token may cost 0.0375 nano-dollars), so they are integers of 10^-18 USD, and a request's cost is
 * summed in that unit and rounded once.
 */

/** Nano-dollars, 10^-9 USD. */
export type Nano = bigint;

/** Price of one unit (token, image, request, ...) in 10^-18 USD. */
export type Price = bigint;

const PRICE_DIGITS = 18;
const PRICE_PER_NANO = 10n ** 9n;
const DECIMAL = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/;

/** Reads a non-negative decimal text exactly; throws a RangeError on anything else or past 18 decimals. */
export function parsePrice(text: string): Price {
  return parseDecimal(text, PRICE_DIGITS);
}

/** The shortest decimal text of a price, in USD, as the catalog's wire objects have it; `parsePrice` reads it back. */
export function textFromPrice(price: Price): string {
  const digits = price.toString().padStart(PRICE_DIGITS + 1, '0');
  const fraction = digits.slice(-PRICE_DIGITS).replace(/0+$/, '');
  const whole = digits.slice(0, -PRICE_DIGITS);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** Converts USD on the wire to nano-dollars, exactly; throws a RangeError if negative or finer than a nano-dollar. */
export function nanoFromUsd(usd: number | string): Nano {
  return parseDecimal(String(usd), 9);
}

/** Nano-dollars to the number of USD that the wire shows. */
export function usdFromNano(nano: Nano): number {
  return Number(nano) / 1e9;
}

/** Rounds a sum of units x price to nano-dollars, half up. */
export function nanoFromPrice(amount: bigint): Nano {
  return (amount + PRICE_PER_NANO / 2n) / PRICE_PER_NANO;
}

/** Nano-dollars in the unit of prices, exactly. */
export function priceFromNano(nano: Nano): bigint {
  return nano * PRICE_PER_NANO;
}

function parseDecimal(text: string, digits: number): bigint {
  const match = DECIMAL.exec(text.trim());
  if (!match) throw new RangeError(`${JSON.stringify(text)} is not a non-negative decimal number`);
  const [, whole = '', fraction = '', exponent = '0'] = match;
  // 1e-7 is written as digits "1" and a decimal point that moves seven places to the left.
  const point = whole.length + Number(exponent);
  const all = whole + fraction;
  const padded = point < 0 ? '0'.repeat(-point) + all : all.padEnd(point, '0');
  const start = Math.max(point, 0);
  const decimals = padded.slice(start).replace(/0+$/, '');
  if (decimals.length > digits) throw new RangeError(`${text} has more than ${digits} decimals`);
  return BigInt((padded.slice(0, start) || '0') + decimals.padEnd(digits, '0'));
}
