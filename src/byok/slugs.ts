/**
 * Which providers of this installation a customer's word for one means. The id of a configured provider means that one.
 * Any other word is the usual name of a service: it means the providers of its kind, but only where they are asked at the
 * service's own address, as the key would otherwise go to somebody whom the customer did not name.
 */
import type { ProviderSettings } from '../base/config.ts';
import { KINDS, type ProviderKind } from '../providers/index.ts';

/** Names that public clients have for kinds which have another id here. */
const USUAL_NAMES: Readonly<Record<string, string>> = {
  'amazon-bedrock': 'bedrock',
  'google-ai-studio': 'google',
  'google-vertex': 'vertex',
  moonshotai: 'moonshot',
  voyageai: 'voyage',
  'z-ai': 'zai',
};

/** By each name. Kinds that stand for a form, or for a server that anybody may run, are no service. */
const SERVICES: ReadonlyMap<string, ProviderKind> = new Map(
  KINDS.filter(isService).flatMap((kind) => namesOf(kind.id).map((name) => [name, kind] as const)),
);
const KINDS_BY_ID = new Map(KINDS.map((kind) => [kind.id, kind]));

type Configured = readonly Pick<ProviderSettings, 'id' | 'kind' | 'baseUrl'>[];

function isService({ baseUrl, transport, environment, alsoEnvironment, credentialDocument }: ProviderKind): boolean {
  const takesCredential = environment !== undefined || alsoEnvironment !== undefined || credentialDocument === true;
  return takesCredential && baseUrl !== undefined && transport === undefined;
}

function namesOf(kindId: string): string[] {
  const others = Object.entries(USUAL_NAMES).filter(([, kind]) => kind === kindId);
  return [kindId, ...others.map(([name]) => name)];
}

/** The kind of what a slug means; undefined when it means nothing here. */
export function kindOf(slug: string, configured: Configured): ProviderKind | undefined {
  const provider = configured.find(({ id }) => id === slug);
  return provider === undefined ? SERVICES.get(slug) : KINDS_BY_ID.get(provider.kind);
}

/** Every slug that means something here, in alphabetical order. */
export function knownSlugs(configured: Configured): string[] {
  return [...new Set([...configured.map(({ id }) => id), ...SERVICES.keys()])].sort();
}

/** The slugs that mean this provider. */
export function slugsOf({ id, kindId }: { id: string; kindId: string }, configured: Configured): string[] {
  const own = configured.find((provider) => provider.id === id);
  if (own === undefined || own.baseUrl !== undefined || !SERVICES.has(kindId)) return [id];
  const taken = new Set(configured.map((provider) => provider.id));
  return [id, ...namesOf(kindId).filter((name) => !taken.has(name))];
}
