/**
 * The gateway's own prefix on the wire. Internally it is always `svc`. On input the public service's name is an alias; on output
 * GATEHOUSE_NAMESPACE selects the prefix.
 */
import type { IncomingHttpHeaders } from 'node:http';

/** The prefix in schemas, rows and code. */
export const WIRE_NAME = 'svc';

/** The prefix that public SDKs use; accepted on input as an alias. */
export const WIRE_ALIAS = 'openrouter';

/** The spelling of each kind of name in one namespace. */
export interface Namespace {
  /** `svc`, `openrouter`, ... */
  readonly name: string;
  /** Key of routing metadata in responses: `svc_metadata`. */
  readonly metadataKey: string;
  /** `X-Svc-`, for responses; on input use `wireHeader`. */
  readonly headerPrefix: string;
  /** `svc:`, as in `svc:web_search`. */
  readonly toolPrefix: string;
  /** `svc/`, as in `svc/auto`. */
  readonly modelPrefix: string;
  /** Text of the comment that keeps a waiting stream open, without the leading `: `. */
  readonly keepAlive: string;
}

/** The spellings for a value of GATEHOUSE_NAMESPACE (lower-case letters and digits). */
export function createNamespace(name: string = WIRE_NAME): Namespace {
  const capitalized = name === WIRE_ALIAS ? 'OpenRouter' : name.charAt(0).toUpperCase() + name.slice(1);
  return {
    name,
    metadataKey: `${name}_metadata`,
    headerPrefix: `X-${capitalized}-`,
    toolPrefix: `${name}:`,
    modelPrefix: `${name}/`,
    keepAlive: `${name.toUpperCase()} PROCESSING`,
  };
}

/** Cached spellings of the few names that every request reads: concatenating them costs more than a lookup. */
const headerNames = new Map<string, readonly [ours: string, alias: string]>();

/**
 * The value of a gateway request header under either prefix; `svc` wins. `name` is what follows the prefix, in lower
 * case: `metadata` reads `X-Svc-Metadata` and `X-OpenRouter-Metadata`. Repeated headers are joined as HTTP defines.
 */
export function wireHeader(headers: IncomingHttpHeaders, name: string): string | undefined {
  let known = headerNames.get(name);
  if (known === undefined) {
    known = [`x-${WIRE_NAME}-${name}`, `x-${WIRE_ALIAS}-${name}`];
    headerNames.set(name, known);
  }
  const value = headers[known[0]] ?? headers[known[1]];
  return Array.isArray(value) ? value.join(', ') : value;
}

const SEPARATORS = ':/._-';

/**
 * A client's token with the alias prefix replaced by `svc`: `openrouter:web_search`,
 * `openrouter/auto`, `openrouter.provide_input`, `openrouter_metadata`. Any other text is returned unchanged.
 */
export function toWireName(token: string): string {
  return replacePrefix(token, WIRE_ALIAS, WIRE_NAME);
}

/** A gateway token (`svc:...`, `svc/...`, `svc_...`) in the spelling of the output namespace. */
export function fromWireName(token: string, namespace: Namespace): string {
  return namespace.name === WIRE_NAME ? token : replacePrefix(token, WIRE_NAME, namespace.name);
}

function replacePrefix(token: string, from: string, to: string): string {
  if (!token.startsWith(from) || token.length === from.length) return token;
  return SEPARATORS.includes(token.charAt(from.length)) ? to + token.slice(from.length) : token;
}
