/**
 * Rate limits: how many requests and tokens a key and a workspace may use in a UTC minute, hour and day, exactly, over all
 * processes. What a request takes counts in the window in which it was accepted. Processes lease parts of a limit from
 * PostgreSQL (`limiter.ts`, `waiting-line.ts`), so that a request away from the limit asks nobody; one that dies takes with
 * it what it had leased, until the window ends. What is spent is the business of `spend/`.
 */
export { Limiter } from './limiter.ts';
export {
  compileLimits,
  type RateLimit,
  type RateLimits,
  type RateRefusal,
  readRateLimits,
  refusalError as rateLimitError,
} from './limits.ts';
export { rateLimitMigrations } from './migrations/index.ts';
export { RateLimitsSchema } from './schema.ts';
export type { Standing } from './standing.ts';
