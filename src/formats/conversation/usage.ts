/** Adds up the usage of several upstream calls that form one answer. */
import type { Usage } from './conversation.ts';

export interface UsageCall {
  /** The upstream's name of the model; absent: the requested model. */
  model?: string;
  usage: Usage;
}

/** The vendor's own record covers only one of the calls, so it is left out. */
export function addUsage(first: Usage, second: Usage | undefined): Usage;
export function addUsage(first: Usage | undefined, second: Usage): Usage;
export function addUsage(first: Usage | undefined, second: Usage | undefined): Usage | undefined;
export function addUsage(first: Usage | undefined, second: Usage | undefined): Usage | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  const { native: _, billed: __, calls: ___, ...counts } = first;
  const sum: Omit<Usage, 'native' | 'billed'> = counts;
  if (first.calls !== undefined || second.calls !== undefined) sum.calls = [...callsOf(first), ...callsOf(second)];
  if (first.imageCalls !== undefined || second.imageCalls !== undefined)
    sum.imageCalls = [...(first.imageCalls ?? []), ...(second.imageCalls ?? [])];
  for (const key of Object.keys(second) as (keyof typeof sum)[]) {
    const [one, other] = [first[key] ?? 0, second[key]];
    if (typeof one === 'number' && typeof other === 'number') Object.assign(sum, { [key]: one + other });
  }
  if (first.billed === undefined && second.billed === undefined) return sum;
  const of = (usage: Usage) => usage.billed ?? { input: usage.input, output: usage.output };
  const [one, other] = [of(first), of(second)];
  return { ...sum, billed: { input: one.input + other.input, output: one.output + other.output } };
}

/** The separate calls. Tokens that no call accounts for form one more call of the requested model. */
export function callsOf(usage: Usage): readonly UsageCall[] {
  const { calls, native: _, ...whole } = usage;
  if (calls === undefined) return [{ usage: whole }];
  const rest = beyond(whole, calls);
  return rest === undefined ? calls : [...calls, { usage: rest }];
}

const COUNTS = ['input', 'cacheRead', 'cacheWrite5m', 'cacheWrite1h', 'output', 'reasoning'] as const;

/** The counts of `usage` that no call accounts for; undefined when there are none. */
export function beyond(usage: Usage, calls: readonly UsageCall[]): Usage | undefined {
  const rest: Usage = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0 };
  let some = false;
  for (const name of COUNTS) {
    const known = calls.reduce((sum, call) => sum + call.usage[name], 0);
    rest[name] = Math.max(usage[name] - known, 0);
    some ||= rest[name] > 0 && name !== 'reasoning';
  }
  return some ? rest : undefined;
}
