/**
 * Routing: which endpoints are tried for a request, and in which order (docs/guides/routing.md; wire/chat.md, "provider").
 *
 *     route        the models of the request -> their endpoints
 *       rules        those that lists, privacy, prices or what they cannot do exclude go
 *       own-keys     customers' own keys at providers come first, and some leave nothing to the gateway's credentials
 *       order        the others by health, tier, preferences and metric, or by lot
 *       sessions     a session goes on where it was
 *       refusal      nobody is left: which rule excluded whom
 *     health, credentials   what rests after a failure
 *
 * Everything is in memory and nothing is waited for; what routing knows of a model is prepared once (`prepared.ts`), and a
 * model with one endpoint is not sorted at all. Not here: trying (`inference/dispatch.ts`) and what follows a failure
 * (`inference/decide.ts`).
 */
export { type Credential, Credentials, wayOf } from './credentials.ts';
export { Health } from './health.ts';
export { type CallersKeys, ownCredentialId } from './own-keys.ts';
export { type Candidate, type Route, type RoutingParts, type RoutingRequest, route } from './route.ts';
export { isOutputFeature, leavesEndpoint, type RoutingPolicy } from './rules.ts';
export { type SessionKey, Sessions, sessionKey } from './sessions.ts';
export { isPricedTier } from './tiers.ts';
