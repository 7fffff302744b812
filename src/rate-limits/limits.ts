/** What a rate limit is, its windows, and how a refusal reads. Rules only, no I/O. */
import { GatewayError } from '../base/errors.ts';

/** A limit for each of these may be set; a window is a whole minute, hour or day of UTC. */
export const MEASURES = [
  'requests_per_minute',
  'requests_per_hour',
  'requests_per_day',
  'tokens_per_minute',
  'tokens_per_hour',
  'tokens_per_day',
] as const;

export type Measure = (typeof MEASURES)[number];
export type Unit = 'requests' | 'tokens';

/** As keys, workspaces and the configuration have them; what is absent or null is not limited there. */
export type RateLimits = { readonly [M in Measure]?: number | null | undefined };

export type RateScope = 'key' | 'workspace';

/** One limit that applies to a request. */
export interface RateLimit {
  readonly scope: RateScope;
  /** Key or workspace id. */
  readonly scopeId: string;
  readonly measure: Measure;
  readonly unit: Unit;
  readonly periodMs: number;
  readonly amount: number;
}

const PERIODS_MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

/** The limits of a key or a workspace: its own, and the configuration's where it has none of a measure. */
export function compileLimits(
  scope: RateScope,
  scopeId: string,
  own: RateLimits | null,
  defaults: RateLimits,
): RateLimit[] {
  const limits: RateLimit[] = [];
  for (const measure of MEASURES) {
    const amount = own?.[measure] ?? defaults[measure];
    if (amount == null) continue;
    const [unit, period] = measure.split('_per_') as [Unit, keyof typeof PERIODS_MS];
    limits.push(Object.freeze({ scope, scopeId, measure, unit, periodMs: PERIODS_MS[period], amount }));
  }
  return limits;
}

/** What is set, without members that say nothing; null when that is nothing at all. */
export function readRateLimits(given: RateLimits | null): RateLimits | null {
  if (given === null) return null;
  const set = MEASURES.filter((measure) => given[measure] != null);
  return set.length === 0 ? null : Object.fromEntries(set.map((measure) => [measure, given[measure]]));
}

/** Windows begin at whole multiples of their length since 1970, which are UTC minutes, hours and midnights. */
export function windowStart(limit: RateLimit, timeMs: number): number {
  return Math.floor(timeMs / limit.periodMs) * limit.periodMs;
}

/** Names one counter. Sorting these names is the lock order in the database. */
export function windowId(limit: RateLimit, timeMs: number): string {
  return `${limit.scope}/${limit.scopeId}/${limit.measure}/${windowStart(limit, timeMs)}`;
}

/** A limit as headers tell it. */
export interface RateState {
  readonly limit: RateLimit;
  /** As far as this process knows. */
  readonly remaining: number;
  /** When the window ends, wall time in ms. */
  readonly resetsAt: number;
}

export interface RateRefusal extends RateState {
  readonly refused: true;
  /** What was asked for; 1 for a request. */
  readonly needed: number;
}

/** `X-RateLimit-*` as wire/common.md has them: the reset in milliseconds since 1970. */
export function rateHeaders({ limit, remaining, resetsAt }: RateState): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(limit.amount),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(resetsAt),
  };
}

/**
 * 429 that names the limit and says when to come back. A request that no window could ever hold is 400: to try it again
 * is in vain.
 */
export function refusalError(refusal: RateRefusal, now: number): GatewayError {
  const { limit, needed, remaining, resetsAt } = refusal;
  const name = `${limit.amount} ${limit.measure.replaceAll('_', ' ')} of the ${limit.scope}`;
  if (needed > limit.amount) {
    return new GatewayError(
      'token_limit_exceeded',
      `this request could use ${needed} tokens, more than the limit of ${name} ever allows; ask for less output`,
      { metadata: { rate_limit: shown(limit), could_use_tokens: needed } },
    );
  }
  const why =
    limit.unit === 'requests'
      ? 'it is used up'
      : `this request could use ${needed} tokens, but ${remaining} are left of it`;
  const headers = rateHeaders(refusal);
  return new GatewayError(
    'rate_limit_exceeded',
    `the limit of ${name} is reached: ${why} until ${new Date(resetsAt).toISOString()}`,
    {
      retryAfterSeconds: Math.max(1, Math.ceil((resetsAt - now) / 1000)),
      headers,
      metadata: { error_type: 'rate_limit_exceeded', headers, rate_limit: shown(limit), retryable: true },
    },
  );
}

function shown({ scope, scopeId, measure, amount }: RateLimit) {
  return { scope, id: scopeId, measure, limit: amount };
}
