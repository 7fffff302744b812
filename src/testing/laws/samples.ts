/** How many random samples a law is tried with. */

const { GATEHOUSE_TEST_EXHAUSTIVE: exhaustive, GATEHOUSE_TEST_QUICK: quick } = process.env;

/**
 * @param usual of a file that is run alone; a third of them in a run of many files (`test/run.ts`), unless it is exhaustive
 * @param many of `npm run test:exhaustive`; default the usual number
 */
export function samples(usual: number, many = usual): number {
  if (exhaustive === '1') return many;
  return quick === '1' ? Math.ceil(usual / 3) : usual;
}
