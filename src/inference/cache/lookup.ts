/**
 * The opt-in response cache ([caching](../../../docs/guides/caching.md)): finds the answer to an earlier identical
 * request, or sets the request up so that its own answer is stored. Routing runs first, so a model that the caller may
 * not use is refused here too.
 */
import { createHash } from 'node:crypto';
import type { CachedAnswer } from '../../cache/index.ts';
import { policyOf } from '../../guardrails/index.ts';
import type { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { AcceptedRequest } from '../request.ts';
import type { Route } from '../routing/index.ts';
import type { Task } from '../task.ts';
import { CacheRecorder } from './recorder.ts';

/**
 * True when the request asks for the cache and both the installation and the operation support it. A `debug` stream
 * never uses the cache, because it shows how the upstream's answer arrives.
 */
export function wantsCache(
  { request, debug, prepaid }: RequestContext,
  task: Task,
  { cached }: InferenceParts,
): boolean {
  return (
    request.about.cache !== undefined &&
    debug === undefined &&
    // The prompt contains search results, so no two requests are the same.
    prepaid === undefined &&
    // A cached answer gets a new id, and no upstream could continue a thread from it.
    request.facts.thread === undefined &&
    task.renew !== undefined &&
    cached?.answers.on === true
  );
}

/**
 * The cached answer to serve. If undefined, the request is set up so that its own answer is stored. Adds the cache
 * headers to the response in either case.
 */
export async function findCached(
  context: RequestContext,
  route: Route,
  parts: InferenceParts,
): Promise<CachedAnswer | undefined> {
  const { request } = context;
  const { clock } = parts;
  const { answers, headerPrefix } = parts.cached!;
  const { ttlSeconds, refresh } = request.about.cache!;
  const key = keyOf(request, route);
  const found = refresh ? undefined : await answers.find(key);
  const header = (name: string) => `${headerPrefix}Cache-${name}`;
  if (found === undefined) {
    context.addHeaders({ [header('Status')]: 'MISS', [header('TTL')]: String(ttlSeconds) });
    const capped = request.facts.maxOutputTokens !== undefined;
    const recorder = new CacheRecorder(answers, { key, ttlMs: ttlSeconds * 1000, capped, now: () => clock.now() });
    context.addListener(recorder);
    return undefined;
  }
  context.addHeaders({
    [header('Status')]: 'HIT',
    [header('Age')]: String(Math.max(0, Math.floor((clock.now() - found.createdAt) / 1000))),
    [header('TTL')]: String(Math.round((found.expiresAt - found.createdAt) / 1000)),
    [header('Source-Id')]: found.sourceId,
  });
  return found;
}

/** Request headers that change what an upstream answers. */
const ANSWER_HEADERS = ['anthropic-version', 'anthropic-beta', 'x-anthropic-beta'] as const;

/** Requests match when the same key sent the same bytes to the same operation, for the same model and region. */
function keyOf({ caller, about, facts, document, format }: AcceptedRequest, { requested }: Route): Buffer {
  const headers = ANSWER_HEADERS.map((name) => about.headers[name] ?? null);
  const scope = [1, caller.keyId, requested, format.id, facts.stream, about.region, headers];
  const { answerFilters } = policyOf(caller).compiled;
  if (answerFilters !== undefined) scope.push([answerFilters.fingerprint]);
  return createHash('sha256')
    .update(`${JSON.stringify(scope)}\n`)
    .update(document.bytes)
    .digest();
}
