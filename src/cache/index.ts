/**
 * The response cache (wire/common.md, "Response cache"): whole answers under a key, in PostgreSQL, so that every process
 * finds them. Bounded in size and time, and never in the way: a database that is slow or away is a miss. Not here: which
 * requests ask for it, what makes two of them the same, and how an answer is given again (`inference/cached/`).
 */
export type { CachedAnswer } from './answer.ts';
export { type CacheOptions, cleanCacheJob, createResponseCache, type ResponseCache } from './cache.ts';
export { cacheMigrations } from './migrations/index.ts';
