/** Prices a million tokens, as registries state them, to exact texts a token. Pure. */

/** Nothing costs more than 1000 USD a million tokens; what does was written in another unit. */
const MOST_PER_MILLION = 1_000;

/** undefined for what is no such price. The shortest decimal of the number is moved, so that nothing is lost in floats. */
export function priceText(perMillion: unknown): string | undefined {
  if (typeof perMillion !== 'number' || !(perMillion >= 0 && perMillion <= MOST_PER_MILLION)) return undefined;
  const [mantissa = '', exponent = '0'] = String(perMillion).split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const decimals = fraction.length + 6 - Number(exponent);
  if (decimals > 18) return undefined;
  const digits = (whole + fraction).padStart(decimals + 1, '0');
  const [before, after] = [digits.slice(0, -decimals), digits.slice(-decimals).replace(/0+$/, '')];
  return after === '' ? before.replace(/^0+(?=\d)/, '') : `${before.replace(/^0+(?=\d)/, '')}.${after}`;
}
