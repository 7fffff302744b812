/** Definition of a rate limit, its windows, and the text of a refusal. Pure functions, no I/O. */
import { GatewayError } from '../base/errors.ts';

/** The measures that can be limited. A window is a whole UTC minute, hour or day. */
export const MEASURES = [
  'requests_per_minute',
  'requests_per_hour',
  'requests_per_day',
  'tokens_per_minute',
  'tokens_per_hour',
  'tokens_per_day',
] as const;

export type Measure = (typeof MEASURES)[number];
type Unit = 'requests' | 'tokens';

/** As set on keys, on workspaces and in the configuration; absent or null means no limit at that level. */
export type RateLimits = { readonly [M in Measure]?: number | null | undefined };

type RateScope = 'key' | 'workspace';

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

/** The limits of a key or a workspace: its own, with the configuration's defaults for measures it does not set. */
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

/** Drops members that are null; returns null when none is set. */
export function readRateLimits(given: RateLimits | null): RateLimits | null {
  if (given === null) return null;
  const set = MEASURES.filter((measure) => given[measure] != null);
  return set.length === 0 ? null : Object.fromEntries(set.map((measure) => [measure, given[measure]]));
}

/** Windows start at multiples of their length since 1970: UTC minutes, hours and midnights. */
export function windowStart(limit: RateLimit, timeMs: number): number {
  return Math.floor(timeMs / limit.periodMs) * limit.periodMs;
}

/** Names one counter. Sorting these names is the lock order in the database. */
export function windowId(limit: RateLimit, timeMs: number): string {
  return `${limit.scope}/${limit.scopeId}/${limit.measure}/${windowStart(limit, timeMs)}`;
}

/** State of a limit for the response headers. */
export interface RateState {
  readonly limit: RateLimit;
  /** As far as this process knows. */
  readonly remaining: number;
  /** When the window ends, wall time in ms. */
  readonly resetsAt: number;
}

export interface RateRefusal extends RateState {
  readonly refused: true;
  /** The requested amount; 1 for a request. */
  readonly needed: number;
}

/** `X-RateLimit-*` headers; the reset is in milliseconds since 1970. */
export function rateHeaders({ limit, remaining, resetsAt }: RateState): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(limit.amount),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(resetsAt),
  };
}

/**
 * 429 that names the limit and when it resets. A request larger than the whole limit gets 400, because a retry can
 * never succeed.
 */
export function refusalError(refusal: RateRefusal, now: number): GatewayError {
  const { limit, needed, remaining, resetsAt } = refusal;
  const name = `${limit.amount} ${limit.measure.replaceAll('_', ' ')} of the ${limit.scope}`;
  if (needed > limit.amount) {
    return new GatewayError(
      'token_limit_exceeded',
      `this request could use ${needed} tokens, which exceeds the limit of ${name}; lower its output limit`,
      { metadata: { rate_limit: shown(limit), could_use_tokens: needed } },
    );
  }
  const why =
    limit.unit === 'requests' ? 'it is used up' : `this request could use ${needed} tokens, but ${remaining} are left`;
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
