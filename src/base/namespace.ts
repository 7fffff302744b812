/**
 * Our own name on the wire. Inside it is always `svc`; on input the public service's name is an alias of it, on output
 * the setting GATEHOUSE_NAMESPACE chooses the name (wire/common.md, "Names").
 */
import type { IncomingHttpHeaders } from 'node:http';

/** The name in our own schemas, rows and code. */
export const WIRE_NAME = 'svc';

/** The name that public SDKs know; taken on input as if it were ours. */
export const WIRE_ALIAS = 'openrouter';

/** How each kind of name is spelled for one namespace. */
export interface Namespace {
  /** `svc`, `openrouter`, ... */
  readonly name: string;
  /** Key of routing metadata in answers: `svc_metadata`. */
  readonly metadataKey: string;
  /** `X-Svc-`, for answers; on input use `wireHeader`. */
  readonly headerPrefix: string;
  /** `svc:`, as in `svc:web_search`. */
  readonly toolPrefix: string;
  /** `svc/`, as in `svc/auto`. */
  readonly modelPrefix: string;
  /** Text of the comment that keeps a waiting stream open, without the leading `: `. */
  readonly keepAlive: string;
}

/** The spellings of a name as GATEHOUSE_NAMESPACE gives it (lower-case letters and digits). */
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

/** Both spellings of the few names that are asked for, with each request: putting them together costs more than to look. */
const headerNames = new Map<string, readonly [ours: string, alias: string]>();

/**
 * The value of one of our request headers under either name; ours wins. `name` is what follows the prefix, in lower
 * case: `metadata` reads `X-Svc-Metadata` and `X-OpenRouter-Metadata`. Repeated headers are joined as HTTP says.
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
 * A token of the client's with the alias replaced by our name where it is the prefix: `openrouter:web_search`,
 * `openrouter/auto`, `openrouter.provide_input`, `openrouter_metadata`. Any other text comes back as it is.
 */
export function toWireName(token: string): string {
  return replacePrefix(token, WIRE_ALIAS, WIRE_NAME);
}

/** One of our own tokens (`svc:...`, `svc/...`, `svc_...`) as the namespace of the output spells it. */
export function fromWireName(token: string, namespace: Namespace): string {
  return namespace.name === WIRE_NAME ? token : replacePrefix(token, WIRE_NAME, namespace.name);
}

function replacePrefix(token: string, from: string, to: string): string {
  if (!token.startsWith(from) || token.length === from.length) return token;
  return SEPARATORS.includes(token.charAt(from.length)) ? to + token.slice(from.length) : token;
}
