/**
 * Rate limits in the pipeline. A request is counted when it is accepted, before any other stage. The tokens of each
 * attempt are reserved at their upper bound before it is sent, and settled with the row.
 */
import type { Caller } from '../../access/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { Endpoint } from '../../catalog/index.ts';
import type { Usage } from '../../formats/conversation/conversation.ts';
import {
  compileLimits,
  type Limiter,
  type RateLimit,
  type RateLimitHold,
  type RateLimits,
  type RateRefusal,
  rateLimitError,
} from '../../rate-limits/index.ts';
import type { Admission } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { Task, TokenBound } from '../task.ts';

/** The configured limits, for keys and workspaces without limits of their own. */
export interface RateDefaults {
  key: RateLimits;
  workspace: RateLimits;
}

export interface RateLimiting {
  limiter: Pick<Limiter, 'admit'>;
  defaults(): RateDefaults;
}

interface Compiled {
  defaults: RateDefaults;
  limits: readonly RateLimit[];
}

/** A caller object is replaced when anything about it changes, so it can serve as the key. */
const compiled = new WeakMap<Caller, Compiled>();

function limitsOf(caller: Caller, defaults: RateDefaults): readonly RateLimit[] {
  const known = compiled.get(caller);
  if (known?.defaults === defaults) return known.limits;
  const limits = [
    ...compileLimits('key', caller.keyId, caller.rateLimits, defaults.key),
    ...compileLimits('workspace', caller.workspaceId, caller.workspace.rateLimits, defaults.workspace),
  ];
  compiled.set(caller, { defaults, limits });
  return limits;
}

/**
 * Counts a request against the limits of its key and workspace; a nested request, which the client
 * does not see, and one that was counted before count against token limits only. Its response then carries the limit headers. Returns no
 * promise unless the database is needed. Throws or rejects with GatewayError 429 or 503.
 */
export function countRequest(
  context: Admission,
  { rateLimits, clock }: Pick<InferenceParts, 'rateLimits' | 'clock'>,
): undefined | Promise<void> {
  if (rateLimits === undefined) return undefined;
  const { caller, startedAt, nested, countedAhead } = context.request;
  const all = limitsOf(caller, rateLimits.defaults());
  const limits = nested !== undefined || countedAhead ? all.filter(({ unit }) => unit === 'tokens') : all;
  if (limits.length === 0) return undefined;
  const counted = (answer: RateLimitHold | RateRefusal): void => {
    if ('refused' in answer) throw rateLimitError(answer, clock.now());
    context.rateLimitHold = answer;
    context.addHeaders(answer.headers);
  };
  const answer = rateLimits.limiter.admit(limits, startedAt);
  if (answer instanceof Promise) return answer.then(counted);
  counted(answer);
  return undefined;
}

/** Called with the row when it is settled. */
export function settleTokens({ rateLimitHold }: Admission, row: { usage: Usage | null }): void {
  rateLimitHold?.settle(tokensOf(row.usage));
}

/** Input and output tokens, cached ones included. */
export function tokensOf(usage: Usage | null): number {
  if (usage === null) return 0;
  return usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h + usage.output;
}

interface TokensToHold {
  task: Pick<Task, 'tokens' | 'countPrompt'>;
  endpoint: Endpoint;
  /** The output cap set so far. */
  cap: number | undefined;
  /** Tokens that earlier attempts of the request may have used. */
  earlier: number;
  clock: Pick<Clock, 'now'>;
}

/**
 * Reserves the tokens that an attempt could use, on top of those of earlier attempts. Resolves with a smaller output
 * cap if a nearly exhausted limit requires one. Returns no promise if no limit is near. Rejects with GatewayError 429.
 */
export function holdTokens(hold: RateLimitHold, wanted: TokensToHold): undefined | Promise<number | undefined> {
  // A token has at least one byte.
  const known = wanted.task.tokens(wanted.endpoint, wanted.cap);
  const refusal = hold.raiseTo(wanted.earlier + known.tokens);
  return refusal && holdFewer(hold, wanted, known, refusal);
}

async function holdFewer(
  hold: RateLimitHold,
  { task, endpoint, cap, earlier, clock }: TokensToHold,
  byBytes: TokenBound,
  answer: RateRefusal | Promise<RateRefusal | undefined>,
): Promise<number | undefined> {
  let known = byBytes;
  let refusal = await answer;
  if (!refusal) return undefined;
  const counted = await task.countPrompt?.(endpoint);
  if (counted !== undefined) {
    known = task.tokens(endpoint, cap, counted);
    refusal = await hold.raiseTo(earlier + known.tokens);
    if (!refusal) return undefined;
  }
  // Tokens that this request already holds are still available to it.
  const smaller = known.within(refusal.remaining + hold.heldTokens - earlier);
  if (smaller !== undefined && !(await hold.raiseTo(earlier + smaller.tokens))) return smaller.capOutputTokens;
  throw rateLimitError(refusal, clock.now());
}
