/** The section `rate_limits` of the yaml: defaults for keys and workspaces (docs/guides/keys.md). */
import type { Field } from './field.ts';
import { integer, mapping } from './readers.ts';

/** Maximum per UTC minute, hour or day; absent: unlimited. */
type RateLimitAmounts = Partial<
  Record<`${'requests' | 'tokens'}_per_${'minute' | 'hour' | 'day'}`, number | undefined>
>;

export interface RateLimitSettings {
  key: RateLimitAmounts;
  workspace: RateLimitAmounts;
}

export const NO_RATE_LIMITS: RateLimitSettings = Object.freeze({
  key: Object.freeze({}),
  workspace: Object.freeze({}),
});

const amount = integer(1, 1_000_000_000_000);

export function rateLimits(field: Field): RateLimitSettings | undefined {
  const read = mapping(field, { key: amounts, workspace: amounts });
  return read && { key: read.key ?? {}, workspace: read.workspace ?? {} };
}

function amounts(field: Field): RateLimitAmounts | undefined {
  return mapping(field, {
    requests_per_minute: amount,
    requests_per_hour: amount,
    requests_per_day: amount,
    tokens_per_minute: amount,
    tokens_per_hour: amount,
    tokens_per_day: amount,
  });
}
