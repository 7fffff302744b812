/** Admission: the steps that may refuse or change a request before anything else sees it, one line each. */
import type { Admission } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import { beforeFilters } from '../plugins/index.ts';
import type { AdmissionParts, Paying } from '../plugins/plugin.ts';
import type { ConversationRequest } from '../request.ts';
import { applyFilters } from './guardrails.ts';
import { countRequest } from './rate-limits.ts';
import { resolveFiles } from './referenced-files.ts';

/**
 * Returns no promise unless the database is needed. Throws or rejects with GatewayError.
 * @param paying undefined where nothing is generated: then plugins do only what is free
 */
export function admit(
  context: Admission,
  parts: AdmissionParts & Pick<InferenceParts, 'rateLimits'>,
  paying?: Paying,
): undefined | Promise<void> {
  const counting = countRequest(context, parts);
  if (counting !== undefined) return counting.then(() => change(context, parts, paying));
  return change(context, parts, paying);
}

/** In order. Each replaces `context.request` by a changed one, or throws. */
function change(context: Admission, parts: AdmissionParts, paying: Paying | undefined): undefined | Promise<void> {
  const resolving = resolveFiles(context, parts);
  if (resolving !== undefined) return resolving.then(() => parseAndFilter(context, parts, paying));
  return parseAndFilter(context, parts, paying);
}

function parseAndFilter(
  context: Admission,
  parts: AdmissionParts,
  paying: Paying | undefined,
): undefined | Promise<void> {
  const { plugins } = context.request;
  const parsing = plugins && beforeFilters(plugins, context as Admission<ConversationRequest>, parts, paying);
  if (parsing !== undefined) return parsing.then(() => applyFilters(context, parts));
  applyFilters(context, parts);
  return undefined;
}
