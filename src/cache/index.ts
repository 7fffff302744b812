/**
 * The response cache: whole answers by key, in PostgreSQL, so that every process finds them. Bounded in size and time,
 * and never in the way: a slow or unreachable database counts as a miss. Not here: which requests use the cache, when
 * two of them match, and how an answer is served again (`inference/cache/`).
 */
export type { CachedAnswer } from './answer.ts';
export { type CacheOptions, cleanCacheJob, createResponseCache, type ResponseCache } from './cache.ts';
export { cacheMigrations } from './migrations/index.ts';
