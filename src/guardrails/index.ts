/**
 * Guardrails: policy for the requests of a workspace, a member or a key. They limit models, providers, regions, data
 * handling and spend, and block, redact or flag text.
 *
 *     operations, assignments    the control plane
 *     policies                   compiles the guardrails of a key to its policy when the key is read
 *     policy                     the effective policy: the most restrictive of all that apply
 *     filters                    searches bodies for text to block, redact or flag
 *
 * The `Caller` carries its policy (`policyOf`), so a request needs no I/O. `inference/` enforces it.
 */
import type { Caller } from '../access/index.ts';
import type { Operation } from '../http/operation.ts';
import { assignmentOperations } from './assignments/operations.ts';
import { type GuardrailParts, guardrailOperations as ownOperations } from './operations.ts';
import { testGuardrail } from './trial.ts';

export type { AnswerFilters, AnswerScreening, ScreenedText } from './filters/answer-filters.ts';
export { patternEngine } from './filters/engine.ts';
export { BlockedByFilter, type Hit } from './filters/filters.ts';
export { checkPatterns } from './filters/patterns.ts';
export { addDefaultFilters, importFilters, importModelList, type NewFilters } from './imported.ts';
export { guardrailMigrations } from './migrations/index.ts';
export type { GuardrailParts } from './operations.ts';
export { guardrailsReader } from './policies.ts';
export { type EndpointRule, OPEN_POLICY, type Policy, policyOf } from './policy.ts';
export type { BuiltinFilter, FilterAction, FilterDirection, PatternFilter } from './settings.ts';
export { endGuardrails } from './workspace-end.ts';

export function guardrailOperations(parts: GuardrailParts): Operation<Caller>[] {
  return [...ownOperations(parts), testGuardrail(parts), ...assignmentOperations(parts)];
}
