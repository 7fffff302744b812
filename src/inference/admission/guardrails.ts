/** Applies the guardrails of the caller's key to a request, before any other stage: refuses, redacts or flags it. */
import { requestedModels } from '../../formats/conversation/format.ts';
import { BlockedByFilter, type Hit, policyOf } from '../../guardrails/index.ts';
import type { GuardrailMark } from '../../spend/index.ts';
import { AnswerScreen } from '../answer/answer-screen.ts';
import type { Admission } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { AcceptedRequest } from '../request.ts';
import { changeDocument } from './changed-document.ts';

/**
 * Replaces the context's request by a redacted one if a filter matches and redacts.
 * @throws GatewayError 403 for a region that is not allowed and when a filter blocks
 */
export function applyFilters(context: Admission, { clock }: Pick<InferenceParts, 'clock'>): void {
  const { request } = context;
  const policy = policyOf(request.caller);
  policy.admit(request.about.region, () => requestedModels(request.facts));
  const { filters } = policy.compiled;
  if (filters === undefined) return;
  const { document, hits } = filters.screen(request.document, request.format.texts, clock);
  context.addHits(hits);
  if (document !== request.document) changeDocument(context, document);
}

/** Creates the filter of one attempt's answer; undefined when no guardrail filters answers. */
export function screenOf(
  { caller }: Pick<AcceptedRequest, 'caller'>,
  { clock }: Pick<InferenceParts, 'clock'>,
): AnswerScreen | undefined {
  const { answerFilters } = policyOf(caller).compiled;
  return answerFilters && new AnswerScreen(answerFilters, clock);
}

/** For the row: which filters matched, but never the matched text. */
export function marksOf(hits: readonly Hit[]): GuardrailMark[] {
  return hits.map(({ filter, matches }) => ({
    guardrail_id: filter.guardrailId,
    guardrail_scope: filter.via,
    filter: filter.shownName.slice(0, MAX_NAME_LENGTH),
    action: filter.action,
    matches,
  }));
}

const MAX_NAME_LENGTH = 1_000;

/** The guardrail stages of the `pipeline` in the routing metadata. */
export function stagesOf(hits: readonly Hit[]): Record<string, unknown>[] {
  return hits.map(({ filter, matches }) => {
    const injection = filter.name === 'regex-prompt-injection';
    return {
      type: 'guardrail',
      name: injection ? 'regex_pi_detection' : 'content-filter',
      guardrail_id: filter.guardrailId,
      guardrail_scope: filter.via,
      data: {
        action: filter.action,
        detected: true,
        engines: [filter.kind === 'builtin' ? 'builtin' : 'regex'],
        patterns: [filter.shownName.slice(0, MAX_NAME_LENGTH)],
        matches,
      },
    };
  });
}

/** The routing metadata of a request that a filter refused before it was routed. */
export function metadataOfRefusal(
  { about }: AcceptedRequest,
  thrown: unknown,
  key: string,
): { key: string; value: Record<string, unknown> } | undefined {
  if (!about.metadata || !(thrown instanceof BlockedByFilter)) return undefined;
  return { key, value: { pipeline: stagesOf(thrown.hits) } };
}
