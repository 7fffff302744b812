/**
 * How a customer's own credential reaches a provider. The credentials of some clouds belong to a place: a project, a region,
 * a resource. What such a credential says of it goes before what the provider is configured with, as elsewhere the credential
 * would be refused. A configured `base_url` stays: whoever set it wants these calls there.
 */
import type { Provider, ProviderKind } from './provider.ts';

export interface OwnWay {
  provider: Provider;
  credential: string;
}

/** Of one provider; whoever is dropped is worked out anew. */
const MOST_WAYS = 1_000;
const WAYS = new WeakMap<Provider, Map<string, OwnWay>>();

/** @param value a customer's credential, as it was stored */
export function ownWay(provider: Provider, value: string): OwnWay {
  if (provider.kind.ownCredential === undefined) return { provider, credential: value };
  let ways = WAYS.get(provider);
  if (ways === undefined) {
    ways = new Map();
    WAYS.set(provider, ways);
  }
  let way = ways.get(value);
  if (way === undefined) {
    way = wayOf(provider, value);
    if (ways.size >= MOST_WAYS) ways.delete(ways.keys().next().value!);
    ways.set(value, way);
  }
  return way;
}

/**
 * What is wrong with what a credential says of its place, in words for the customer; undefined: nothing. Nothing of the
 * credential stands in them.
 */
export function placeProblem(kind: ProviderKind, value: string): string | undefined {
  const { options = {} } = kind.ownCredential?.(value) ?? {};
  for (const [name, said] of Object.entries(options)) {
    const facts = kind.options?.[name];
    if (facts !== undefined && !facts.form.test(said)) return `names a ${name} that is none: it must be ${facts.said}`;
  }
  return undefined;
}

export function addressOf({ id, baseUrl }: ProviderKind, options: Readonly<Record<string, string>>): string {
  return (typeof baseUrl === 'function' ? baseUrl(options) : baseUrl) ?? `in-process:${id}`;
}

function wayOf(provider: Provider, value: string): OwnWay {
  const { kind } = provider;
  const { credential, options: said } = kind.ownCredential!(value);
  // It becomes part of an address: what is not of the form counts as not said.
  const given = Object.entries(said).filter(([name, text]) => kind.options?.[name]?.form.test(text));
  if (given.every(([name, text]) => provider.options[name] === text)) return { provider, credential };
  const options = { ...provider.options, ...Object.fromEntries(given) };
  const baseUrl = provider.baseUrl === addressOf(kind, provider.options) ? addressOf(kind, options) : provider.baseUrl;
  const { signer: _signer, ...rest } = provider;
  const own: Provider = { ...rest, options, baseUrl };
  const signer = kind.signer?.(own);
  return { provider: Object.freeze(signer === undefined ? own : { ...own, signer }), credential };
}
