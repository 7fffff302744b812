/**
 * Routing: which endpoints are tried for a request, and in which order ([guide](../../../docs/guides/routing.md)).
 *
 *     route        the models of the request -> their endpoints
 *       rules        drops endpoints excluded by allow/deny lists, privacy, price or missing capabilities
 *       byok         puts BYOK credentials first; some exclude the gateway's own credentials
 *       order        ranks the others by health, tier, preferences and metric, or by weighted chance
 *       sessions     keeps a session at its endpoint
 *       refusal      explains which rule excluded which endpoint when none is left
 *     health, credentials   cooldowns after failures
 *
 * Routing reads only memory and never waits. Per-model data is prepared once (`prepared.ts`), and a model with one
 * endpoint is not sorted at all. Not here: the attempts (`inference/turns/dispatch.ts`) and what follows a failure
 * (`inference/turns/verdict.ts`).
 */

export {
  type ContinuedWork,
  continuing,
  credentialOf,
  fingerprint,
  notConfigured,
  type ProviderAccount,
} from './account.ts';
export { byokCredentialId, type CallerByok } from './byok.ts';
export { type Credential, Credentials, targetOf } from './credentials.ts';
export { Health } from './health.ts';
export { type Candidate, type Considered, type Route, type RoutingParts, type RoutingRequest, route } from './route.ts';
export { offersWhere } from './router-models.ts';
export { type AccountPolicy, isOutputFeature, leavesEndpoint, mayReach } from './rules.ts';
export { type SessionKey, Sessions, sessionKey } from './sessions.ts';
export { asServed, tierFor } from './tiers.ts';
