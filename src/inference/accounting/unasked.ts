/** Why endpoints of the requested models were not tried, for the row. Most models have one endpoint, which is tried. */
import type { UnaskedEndpoint } from '../../spend/index.ts';
import type { RequestContext } from '../context.ts';
import type { Considered, Route } from '../routing/index.ts';
import type { Ending } from './record.ts';

/** The most endpoints that a row lists. */
const MAX_LISTED = 20;

type Outcome = Pick<Ending, 'responses' | 'error' | 'cancelled'>;

/** Excluded endpoints with the names of the rules, then candidates in order. Undefined if every endpoint was tried. */
export function unaskedOf(
  context: Pick<RequestContext, 'request' | 'skipped'>,
  { considered, candidates }: Pick<Route, 'considered' | 'candidates'>,
  outcome: Outcome,
): readonly UnaskedEndpoint[] | undefined {
  if (considered === undefined) return undefined;
  const unasked: UnaskedEndpoint[] = [];
  const seen = new Set(outcome.responses.map((response) => response.endpoint_id));
  const add = ({ id, provider, modelId }: Considered['excluded'][number]['endpoint'], reasons: readonly string[]) => {
    if (seen.has(id) || unasked.length === MAX_LISTED) return;
    seen.add(id);
    unasked.push([id, provider.name, modelId, ...reasons]);
  };
  for (const { endpoint, reasons } of considered.excluded) add(endpoint, reasons);
  const ended = endOf(outcome);
  for (const candidate of candidates) {
    const reason = context.skipped?.get(candidate.endpoint.id) ?? ended;
    add(candidate.endpoint, considered.inCooldown.includes(candidate) ? ['cooldown', reason] : [reason]);
  }
  const limit = context.request.facts.provider.allow_fallbacks === false ? 'allow_fallbacks' : 'candidate_limit';
  for (const { endpoint } of considered.kept.flat()) add(endpoint, [limit]);
  return unasked.length === 0 ? undefined : unasked;
}

/** Why the remaining candidates were not reached. */
function endOf({ responses, error, cancelled }: Outcome): string {
  if (error === null && !cancelled) return 'answered_before';
  if (responses.some(({ status }) => status === 200)) return 'answered_before';
  return cancelled ? 'cancelled' : 'request_failed';
}
