import * as kinds from './kinds/index.ts';
import type { ProviderKind } from './provider.ts';

const FIRST = ['openai', 'anthropic'];
const LAST = ['simulated', 'local'];

/**
 * Every kind, in the order in which environment variables enable them: services, then bare formats, then those in this
 * process. `loadConfig` takes this list.
 */
export const KINDS: readonly ProviderKind[] = Object.values<ProviderKind>(kinds).toSorted(
  (a, b) => rankOf(a) - rankOf(b) || (a.id < b.id ? -1 : 1),
);

function rankOf({ id, baseUrl }: ProviderKind): number {
  if (FIRST.includes(id)) return FIRST.indexOf(id) - FIRST.length;
  if (LAST.includes(id)) return LAST.indexOf(id) + 2;
  return baseUrl === undefined ? 1 : 0;
}
