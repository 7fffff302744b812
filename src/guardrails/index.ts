/**
 * Guardrails: what the requests of a workspace, a member or a key may do. Which models and providers they may reach,
 * through which region, how data must be handled, what may be spent, and which texts are blocked, replaced or noted.
 *
 *     operations, assignments    the control plane
 *     policies                   the guardrails of a key -> its policy, when the key is read
 *     policy                     the effective policy: the most restrictive of all that apply
 *     filters                    what stands in a body, and what may go out of it
 *
 * A policy travels in the `Caller`, so a request reads nothing: `policyOf` finds it there. `inference/` enforces it.
 */
import type { Caller } from '../access/index.ts';
import type { Operation } from '../http/operation.ts';
import { assignmentOperations } from './assignments/operations.ts';
import { type GuardrailParts, guardrailOperations as ownOperations } from './operations.ts';

export type { AnswerFilters, AnswerScreening, ScreenedText } from './filters/answer-filters.ts';
export { patternEngine } from './filters/engine.ts';
export { BlockedByFilter, type Hit } from './filters/filters.ts';
export { guardrailMigrations } from './migrations/index.ts';
export type { GuardrailParts } from './operations.ts';
export { guardrailsReader } from './policies.ts';
export { type EndpointRule, OPEN_POLICY, type Policy, policyOf } from './policy.ts';
export { endGuardrails } from './workspace-end.ts';

export function guardrailOperations(parts: GuardrailParts): Operation<Caller>[] {
  return [...ownOperations(parts), ...assignmentOperations(parts)];
}
