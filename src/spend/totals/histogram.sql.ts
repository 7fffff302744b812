/**
 * Latencies are counted in buckets, so that those of many totals add up: 8 buckets for each doubling from 8 ms to 524 s, one
 * below and one above. A percentile is then at most 9 % from the exact one.
 */
const STEPS = 8;
const FIRST_MS = 8;
const DOUBLINGS = 16;
const BOUNDS = Array.from({ length: STEPS * DOUBLINGS + 1 }, (_, at) => FIRST_MS * 2 ** (at / STEPS));
const bounds = `'{${BOUNDS.join(',')}}'::double precision[]`;

/** The columns that count. */
export const BUCKETS = Array.from({ length: BOUNDS.length + 1 }, (_, at) => `b${at}`);

/** The position among `BUCKETS`. */
export function bucketSql(ms: string): string {
  return `width_bucket(${ms}, ${bounds})`;
}

/** Of the sums of all buckets of `table`. @param share 0.5 for the median */
export function percentileSql(table: string, share: number): string {
  const counts = BUCKETS.map((name) => `coalesce(sum(${table}.${name}), 0)::bigint`).join(', ');
  return `histogram_percentile(array[${counts}], ${bounds}, ${share})`;
}
