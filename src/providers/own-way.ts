/**
 * How a customer's BYOK credential reaches a provider. Some cloud credentials belong to a project, a region or a
 * resource. Those values override the configured options, because the credential would be refused elsewhere. A
 * configured `base_url` stays: the operator wants these calls there.
 */
import type { Provider, ProviderKind } from './provider.ts';

export interface OwnWay {
  provider: Provider;
  credential: string;
}

/** Most cached targets per provider; an evicted one is computed again. */
const MOST_WAYS = 1_000;
const WAYS = new WeakMap<Provider, Map<string, OwnWay>>();

/** @param value the customer's credential, as stored */
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
 * Describes an invalid option in a credential, such as its region; undefined if there is none. The text must not
 * contain any of the credential.
 */
export function placeProblem(kind: ProviderKind, value: string): string | undefined {
  const { options = {} } = kind.ownCredential?.(value) ?? {};
  for (const [name, said] of Object.entries(options)) {
    const facts = kind.options?.[name];
    if (facts !== undefined && !facts.form.test(said)) return `has an invalid ${name}: it must be ${facts.said}`;
  }
  return undefined;
}

export function addressOf({ id, baseUrl }: ProviderKind, options: Readonly<Record<string, string>>): string {
  return (typeof baseUrl === 'function' ? baseUrl(options) : baseUrl) ?? `in-process:${id}`;
}

function wayOf(provider: Provider, value: string): OwnWay {
  const { kind } = provider;
  const { credential, options: said } = kind.ownCredential!(value);
  // The value becomes part of a URL, so an invalid one is ignored.
  const given = Object.entries(said).filter(([name, text]) => kind.options?.[name]?.form.test(text));
  if (given.every(([name, text]) => provider.options[name] === text)) return { provider, credential };
  const options = { ...provider.options, ...Object.fromEntries(given) };
  const baseUrl = provider.baseUrl === addressOf(kind, provider.options) ? addressOf(kind, options) : provider.baseUrl;
  const { signer: _signer, ...rest } = provider;
  const own: Provider = { ...rest, options, baseUrl };
  const signer = kind.signer?.(own);
  return { provider: Object.freeze(signer === undefined ? own : { ...own, signer }), credential };
}
