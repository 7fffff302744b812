/** Whether the gateway places prompt cache breakpoints in a request whose client sets none. */
import type { IncomingHttpHeaders } from 'node:http';
import { PROMPT_CACHING_MODES, type PromptCachingMode } from '../../base/config.ts';
import { invalidField } from '../../base/errors.ts';
import { WIRE_NAME, wireHeader } from '../../base/namespace.ts';
import type { Endpoint } from '../../catalog/index.ts';
import { type PromptCaching, SHORTEST_CACHED_BYTES } from '../../formats/conversation/cache-breakpoints.ts';
import { fieldsOf } from '../../formats/conversation/fields.ts';
import type { AcceptedRequest } from '../request.ts';

/** `X-Svc-Prompt-Caching`; undefined when absent. Throws GatewayError 400 for an unknown mode. */
export function requestedPromptCaching(headers: IncomingHttpHeaders): PromptCachingMode | undefined {
  const value = wireHeader(headers, 'prompt-caching')?.trim().toLowerCase();
  if (value === undefined || value === '') return undefined;
  const mode = PROMPT_CACHING_MODES.find((known) => known === value);
  if (mode !== undefined) return mode;
  throw invalidField(`x-${WIRE_NAME}-prompt-caching`, `must be one of ${PROMPT_CACHING_MODES.join(', ')}`);
}

/**
 * The mode for one endpoint: the request's, else the workspace's, else the account's. Undefined if no breakpoints are
 * placed, for example for an endpoint without a price for cached tokens or a prompt too short to be cached.
 */
export function promptCachingFor(
  { about, facts, caller, document }: AcceptedRequest,
  { pricing }: Endpoint,
  account: PromptCachingMode,
): PromptCaching | undefined {
  const mode = about.promptCaching ?? caller.workspace.promptCaching ?? account;
  // The service stores the prompts of threads, so breakpoints do not apply.
  if (facts.thread !== undefined) return undefined;
  if (mode === 'off' || pricing?.inputCacheRead === undefined) return undefined;
  if (document.bytes.length < SHORTEST_CACHED_BYTES) return undefined;
  // In the mode `explicit`, only what the client marks is cached.
  if (fieldsOf(document.structure['prompt_cache_options'])['mode'] === 'explicit') return undefined;
  return mode;
}
