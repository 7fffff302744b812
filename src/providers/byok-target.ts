/**
 * How a customer's BYOK credential reaches a provider. Some cloud credentials belong to a project, a region or a
 * resource. Those values override the configured options, because the credential would be refused elsewhere. A
 * configured `base_url` stays: the operator wants these calls there.
 */
import type { Provider, ProviderKind } from './provider.ts';

/** The provider of a call, and the credential that it uses. */
export interface UpstreamTarget {
  provider: Provider;
  credential: string | null;
}

/** Most cached targets per provider; an evicted one is computed again. */
const MAX_TARGETS = 1_000;
const TARGETS = new WeakMap<Provider, Map<string, UpstreamTarget>>();

/** @param value the customer's credential, as stored */
export function byokTarget(provider: Provider, value: string): UpstreamTarget {
  if (provider.kind.splitByok === undefined) return { provider, credential: value };
  let targets = TARGETS.get(provider);
  if (targets === undefined) {
    targets = new Map();
    TARGETS.set(provider, targets);
  }
  let target = targets.get(value);
  if (target === undefined) {
    target = newTarget(provider, value);
    if (targets.size >= MAX_TARGETS) targets.delete(targets.keys().next().value!);
    targets.set(value, target);
  }
  return target;
}

/**
 * Describes an invalid option in a credential, such as its region; undefined if there is none. The text must not
 * contain any of the credential.
 */
export function optionProblem(kind: ProviderKind, value: string): string | undefined {
  const { options = {} } = kind.splitByok?.(value) ?? {};
  for (const [name, said] of Object.entries(options)) {
    const facts = kind.options?.[name];
    if (facts !== undefined && !facts.pattern.test(said))
      return `has an invalid ${name}: it must be ${facts.expectation}`;
  }
  return undefined;
}

export function addressOf({ id, baseUrl }: ProviderKind, options: Readonly<Record<string, string>>): string {
  return (typeof baseUrl === 'function' ? baseUrl(options) : baseUrl) ?? `in-process:${id}`;
}

function newTarget(provider: Provider, value: string): UpstreamTarget {
  const { kind } = provider;
  const { credential, options: said } = kind.splitByok!(value);
  // The value becomes part of a URL, so an invalid one is ignored.
  const given = Object.entries(said).filter(([name, text]) => kind.options?.[name]?.pattern.test(text));
  if (given.every(([name, text]) => provider.options[name] === text)) return { provider, credential };
  const options = { ...provider.options, ...Object.fromEntries(given) };
  const baseUrl = provider.baseUrl === addressOf(kind, provider.options) ? addressOf(kind, options) : provider.baseUrl;
  const { signer: _signer, ...rest } = provider;
  const own: Provider = { ...rest, options, baseUrl };
  const signer = kind.signer?.(own);
  return { provider: Object.freeze(signer === undefined ? own : { ...own, signer }), credential };
}
