/**
 * Upstream services. A kind of provider is code, one small file each, and stands in the list below; a provider is one
 * configured instance of a kind. Not here: which models they offer (`catalog/`), and what their bodies mean (`formats/`).
 */
import type { Config } from '../base/config.ts';
import { anthropic } from './anthropic.ts';
import { chat } from './chat.ts';
import { messages } from './messages.ts';
import { openai } from './openai.ts';
import type { Provider, ProviderKind } from './provider.ts';
import { simulated } from './simulated.ts';

export type { Provider, ProviderKind, Timeouts } from './provider.ts';
export type { Transport, UpstreamCall, UpstreamReceiver, UpstreamRequest } from './send.ts';

/** Every kind, in the order in which the environment switches them on. `loadConfig` takes this list. */
export const KINDS: readonly ProviderKind[] = [openai, anthropic, chat, messages, simulated];

const BY_ID = new Map(KINDS.map((kind) => [kind.id, kind]));

/** The configured providers, in the order of the configuration. A reload makes new ones; nothing is kept in them. */
export function providersFrom(config: Pick<Config, 'providers'>): readonly Provider[] {
  return config.providers.map((settings) => {
    const kind = BY_ID.get(settings.kind);
    if (!kind) throw new Error(`unknown kind of provider: ${settings.kind}`);
    return Object.freeze({
      id: settings.id,
      name: settings.name,
      kind,
      baseUrl: settings.baseUrl ?? kind.baseUrl ?? `in-process:${kind.id}`,
      credentials: Object.freeze(settings.credentials.map((credential) => credential.reveal())),
      timeouts: settings.timeouts,
      maxConcurrency: settings.maxConcurrency,
    });
  });
}
