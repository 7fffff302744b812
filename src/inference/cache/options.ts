/** Reads the response cache headers of a request ([caching](../../../docs/guides/caching.md)). Pure. */
import type { IncomingHttpHeaders } from 'node:http';
import { wireHeader } from '../../base/namespace.ts';

export interface CacheOptions {
  /** How long a new answer is kept. */
  ttlSeconds: number;
  /** Ignore the cached answer and replace it with a new one. */
  refresh: boolean;
}

const DEFAULT_TTL_SECONDS = 300;
const MAX_TTL_SECONDS = 86_400;

/** Undefined for a request that does not ask for the cache, as most do not. */
export function cacheOptionsOf(headers: IncomingHttpHeaders): CacheOptions | undefined {
  const wanted = wireHeader(headers, 'cache');
  if (wanted === undefined || !isTrue(wanted)) return undefined;
  return {
    ttlSeconds: ttlOf(wireHeader(headers, 'cache-ttl')),
    refresh: isTrue(wireHeader(headers, 'cache-clear') ?? ''),
  };
}

/** A preset that disables the cache overrides the headers, otherwise they override the preset. */
export function cacheUnderPreset(
  {
    cacheEnabled,
    cacheTtlSeconds = DEFAULT_TTL_SECONDS,
  }: { cacheEnabled?: boolean | undefined; cacheTtlSeconds?: number | undefined },
  asked: CacheOptions | undefined,
): CacheOptions | undefined {
  if (cacheEnabled === false) return undefined;
  return asked ?? (cacheEnabled === true ? { ttlSeconds: cacheTtlSeconds, refresh: false } : undefined);
}

function isTrue(value: string): boolean {
  return value.trim().toLowerCase() === 'true';
}

/** Uses the leading digits. A value without digits means the default. */
function ttlOf(value: string | undefined): number {
  const digits = /^\s*(\d+)/.exec(value ?? '')?.[1];
  if (digits === undefined) return DEFAULT_TTL_SECONDS;
  return Math.min(Math.max(Number(digits), 1), MAX_TTL_SECONDS);
}
