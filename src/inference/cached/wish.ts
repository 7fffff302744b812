/** What the headers of a request want of the response cache (wire/common.md, "Request headers"). Pure. */
import type { IncomingHttpHeaders } from 'node:http';
import { wireHeader } from '../../base/namespace.ts';

export interface CacheWish {
  /** How long the answer is kept, should it have to be made. */
  ttlSeconds: number;
  /** It is made anew in any case, and kept in the place of the old one. */
  refresh: boolean;
}

const DEFAULT_TTL_SECONDS = 300;
const LONGEST_TTL_SECONDS = 86_400;

/** Undefined for a request that does not ask for the cache, which is the rule. */
export function cacheWishOf(headers: IncomingHttpHeaders): CacheWish | undefined {
  const wanted = wireHeader(headers, 'cache');
  if (wanted === undefined || !isTrue(wanted)) return undefined;
  return {
    ttlSeconds: ttlOf(wireHeader(headers, 'cache-ttl')),
    refresh: isTrue(wireHeader(headers, 'cache-clear') ?? ''),
  };
}

function isTrue(value: string): boolean {
  return value.trim().toLowerCase() === 'true';
}

/** Leading digits count; what has none, or is no count of seconds, is the default. */
function ttlOf(value: string | undefined): number {
  const digits = /^\s*(\d+)/.exec(value ?? '')?.[1];
  if (digits === undefined) return DEFAULT_TTL_SECONDS;
  return Math.min(Math.max(Number(digits), 1), LONGEST_TTL_SECONDS);
}
