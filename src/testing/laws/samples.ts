/** How many random samples a law is tried with. */

const { GATEHOUSE_TEST_EXHAUSTIVE: exhaustive, GATEHOUSE_TEST_QUICK: quick } = process.env;

/**
 * @param usual of `npm test`; a third of them when the unit tests run alone (`npm run test:unit`), where a law is tried often
 * @param many of `npm run test:exhaustive`; default the usual number
 */
export function samples(usual: number, many = usual): number {
  if (exhaustive === '1') return many;
  return quick === '1' ? Math.ceil(usual / 3) : usual;
}
