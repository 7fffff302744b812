/**
 * Resolves a provider slug to configured providers. The id of a configured provider means that provider. Any other slug
 * is the common name of a service: it means the providers of that kind, but only those at the service's own URL.
 * Otherwise the credential could go to a third party that the customer did not name.
 */
import type { ProviderSettings } from '../base/config.ts';
import { KINDS, type ProviderKind } from '../providers/index.ts';

/** By each of their names. Excludes kinds that stand for a format, or for a server that anyone may run. */
const SERVICES: ReadonlyMap<string, ProviderKind> = new Map(
  KINDS.filter(({ service }) => service).flatMap((kind) => namesOf(kind).map((name) => [name, kind] as const)),
);
const KINDS_BY_ID = new Map(KINDS.map((kind) => [kind.id, kind]));

type Configured = readonly Pick<ProviderSettings, 'id' | 'kind' | 'baseUrl'>[];

function namesOf({ id, service }: ProviderKind): readonly string[] {
  return [id, ...(service?.aliases ?? [])];
}

/** The kind that a slug means; undefined if it is unknown. */
export function kindOf(slug: string, configured: Configured): ProviderKind | undefined {
  const provider = configured.find(({ id }) => id === slug);
  return provider === undefined ? SERVICES.get(slug) : KINDS_BY_ID.get(provider.kind);
}

/** Every known slug, in alphabetical order. */
export function knownSlugs(configured: Configured): string[] {
  return [...new Set([...configured.map(({ id }) => id), ...SERVICES.keys()])].sort();
}

/** The slugs that mean this provider. */
export function slugsOf({ id, kindId }: { id: string; kindId: string }, configured: Configured): string[] {
  const own = configured.find((provider) => provider.id === id);
  const service = SERVICES.get(kindId);
  if (own === undefined || own.baseUrl !== undefined || service === undefined) return [id];
  const taken = new Set(configured.map((provider) => provider.id));
  return [id, ...namesOf(service).filter((name) => !taken.has(name))];
}
