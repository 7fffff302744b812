/**
 * Requests that ask for the response cache (wire/common.md, "Response cache"): the answer of an earlier one where there
 * is one, otherwise one that is kept. Such a request is routed first, so that a model which its caller may no longer use
 * is refused as ever.
 */
import { createHash } from 'node:crypto';
import type { CachedAnswer } from '../../cache/index.ts';
import { policyOf } from '../../guardrails/index.ts';
import { addHeaders } from '../answer-headers.ts';
import type { InferenceParts } from '../parts.ts';
import type { AcceptedRequest } from '../request.ts';
import type { Route } from '../routing/index.ts';
import type { Task } from '../task.ts';
import { AnswerGatherer } from './gather.ts';

/**
 * The request asks for it, and this installation and its operation have a cache. A stream that is to show how it comes
 * about (`debug`) has to come about.
 */
export function wantsCache(request: AcceptedRequest, task: Task, { cached }: InferenceParts): boolean {
  return (
    request.about.cache !== undefined &&
    request.debug === undefined &&
    // No upstream holds the answer under the id that a repeated one gets.
    request.asked.thread === undefined &&
    task.renew !== undefined &&
    cached?.answers.on === true
  );
}

/**
 * The earlier answer to be given; otherwise undefined, and the request is set up so that its own is kept. The answer's
 * headers are told in either case.
 */
export async function findCached(
  request: AcceptedRequest,
  task: Task,
  route: Route,
  parts: InferenceParts,
): Promise<CachedAnswer | undefined> {
  const { clock } = parts;
  const { answers, headerPrefix } = parts.cached!;
  const { ttlSeconds, refresh } = request.about.cache!;
  const key = keyOf(request, task, route);
  const found = refresh ? undefined : await answers.find(key);
  const header = (name: string) => `${headerPrefix}Cache-${name}`;
  if (found === undefined) {
    addHeaders(request, { [header('Status')]: 'MISS', [header('TTL')]: String(ttlSeconds) });
    const capped = request.asked.maxOutputTokens !== undefined;
    const gatherer = new AnswerGatherer(answers, { key, ttlMs: ttlSeconds * 1000, capped, now: () => clock.now() });
    request.listeners = [...(request.listeners ?? []), gatherer];
    return undefined;
  }
  addHeaders(request, {
    [header('Status')]: 'HIT',
    [header('Age')]: String(Math.max(0, Math.floor((clock.now() - found.createdAt) / 1000))),
    [header('TTL')]: String(Math.round((found.expiresAt - found.createdAt) / 1000)),
    [header('Source-Id')]: found.sourceId,
  });
  return found;
}

/** Headers that change what an upstream answers. */
const TELLING_HEADERS = ['anthropic-version', 'anthropic-beta', 'x-anthropic-beta'] as const;

/** Two requests are the same when the same key sent the same bytes for the same model to the same operation and region. */
function keyOf({ caller, about, asked, document }: AcceptedRequest, task: Task, { requested }: Route): Buffer {
  const told = TELLING_HEADERS.map((name) => about.headers[name] ?? null);
  const scope = [1, caller.keyId, requested, task.form, asked.stream, about.region, told];
  const { answerFilters } = policyOf(caller).prescription;
  if (answerFilters !== undefined) scope.push([answerFilters.fingerprint]);
  return createHash('sha256')
    .update(`${JSON.stringify(scope)}\n`)
    .update(document.bytes)
    .digest();
}
