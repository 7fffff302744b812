/** Converts prices per million tokens, as registries state them, to exact decimal strings per token. Pure. */

/** No price exceeds 1000 USD per million tokens; a higher number uses another unit. */
const MOST_PER_MILLION = 1_000;

/**
 * Undefined for an invalid price. Shifts the decimal point of the number's shortest text, so that no precision is lost.
 */
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
