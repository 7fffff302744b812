/**
 * The checked egress: the only way to an address that somebody other than the operator chose (images and documents of a
 * request, results that a provider names by address, destinations). It resolves a name once, refuses every address that
 * is not public, and connects to the address that it has checked; a redirect is a new decision. Not here: upstreams of the
 * configuration (`providers/send.ts`), and what the fetched bytes mean.
 */
export { createEgress, type Egress, type EgressOptions, type EgressReply, type EgressRequest } from './egress.ts';
export { EgressError, type EgressFault } from './fault.ts';
