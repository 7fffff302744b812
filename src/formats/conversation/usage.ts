/** Counts of several calls to upstreams that make one answer. */
import type { Usage } from './conversation.ts';

/** The vendor's own record of one of them says nothing about the sum, so it is left out. */
export function addUsage(first: Usage, second: Usage | undefined): Usage;
export function addUsage(first: Usage | undefined, second: Usage): Usage;
export function addUsage(first: Usage | undefined, second: Usage | undefined): Usage | undefined;
export function addUsage(first: Usage | undefined, second: Usage | undefined): Usage | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  const { native: _, billed: __, ...sum } = first;
  for (const key of Object.keys(second) as (keyof typeof sum)[]) {
    const [one, other] = [first[key] ?? 0, second[key]];
    if (typeof one === 'number' && typeof other === 'number') Object.assign(sum, { [key]: one + other });
  }
  if (first.billed === undefined && second.billed === undefined) return sum;
  const of = (usage: Usage) => usage.billed ?? { input: usage.input, output: usage.output };
  const [one, other] = [of(first), of(second)];
  return { ...sum, billed: { input: one.input + other.input, output: one.output + other.output } };
}
