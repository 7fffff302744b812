/**
 * The checked egress: the only way to a URL that was not chosen by the operator (images and documents of a request,
 * results that a provider returns as URLs, destinations). It resolves a name once, refuses every address that is not
 * public, and connects to the address that it checked; each redirect is checked again. Not here: the configured
 * upstreams (`providers/send/`), the meaning of the fetched bytes, and requests of sandboxes (`egress-proxy/`, which dials
 * here by the same rules).
 */
export { type Outgoing, post } from './delivery.ts';
export { type Checks, type Dialling, dial, NETWORK } from './dial.ts';
export { createEgress, type Egress, type EgressOptions, type EgressReply, type EgressRequest } from './egress.ts';
export { EgressError, type EgressFault } from './fault.ts';
export { EgressRules } from './rules.ts';
export type { EgressStream } from './streamed.ts';
