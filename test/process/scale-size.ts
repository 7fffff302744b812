/** Sizes of the large tests: `GATEHOUSE_SCALE_<NAME>` of the environment, or the default. */
export function scaleSize(name: string, fallback: number): number {
  const value = Number(process.env[`GATEHOUSE_SCALE_${name}`] ?? fallback);
  if (!(value > 0)) throw new Error(`GATEHOUSE_SCALE_${name} must be a number above 0`);
  return value;
}

/** The value below which 95 of 100 are. */
export function p95(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.95) - 1]!;
}
