/**
 * Upstream services. A provider kind is code, one small file each in `kinds/`; a provider is one configured instance of a
 * kind. `auth/` signs calls, `framing/` splits streams into events, `send/` is the transport; `local/` and `simulated/`
 * answer within the process. Not here: which models they offer (`catalog/`), and what their bodies mean (`formats/`).
 */
import type { Config, ProviderSettings } from '../base/config.ts';
import type { FormatId } from '../formats/conversation/conversation.ts';
import { KINDS } from './all-kinds.ts';
import { addressOf } from './byok-target.ts';
import type { Provider, ProviderKind } from './provider.ts';

export { KINDS } from './all-kinds.ts';
export type { Signature, Signer, UnsignedCall } from './auth/sign.ts';
export { SigningHash } from './auth/signing-hash.ts';
export {
  type BatchAbout,
  type BatchAccount,
  type BatchedCall,
  BatchRefusal,
  type BatchService,
  type UpstreamBatch,
  type UpstreamResult,
} from './batches/contract.ts';
export { addressOf, byokTarget, optionProblem, type UpstreamTarget } from './byok-target.ts';
export { type DeliveryParts, deliver } from './deliver.ts';
export { Discovery, type LocalServer } from './discovery.ts';
export type { FrameReader, Framing } from './framing/framing.ts';
export { type Delivery, formatsFor, type Provider, type ProviderKind } from './provider.ts';

export {
  createTransport,
  type StreamedBody,
  type Timeouts,
  type Transport,
  type UpstreamCall,
  type UpstreamReceiver,
  type UpstreamRequest,
} from './send/index.ts';
export { outgoingOf } from './send/outgoing.ts';

const BY_ID = new Map(KINDS.map((kind) => [kind.id, kind]));

/** The configured providers, in configuration order. A reload creates new ones, so they must hold no state. */
export function providersFrom(config: Pick<Config, 'providers'>): readonly Provider[] {
  return config.providers.map(providerFrom);
}

function providerFrom(settings: ProviderSettings): Provider {
  const kind = BY_ID.get(settings.kind);
  if (!kind) throw new Error(`unknown provider kind: ${settings.kind}`);
  const provider: Provider = {
    id: settings.id,
    name: settings.name,
    kind: configured(kind, settings),
    baseUrl: urlOf(kind, settings),
    options: settings.options,
    credentials: Object.freeze(settings.credentials.map((credential) => credential.reveal())),
    ...(settings.headers && { headers: revealed(settings.headers) }),
    timeouts: settings.timeouts,
    maxConcurrency: settings.maxConcurrency,
    ...(settings.batches === false && { batches: false }),
  };
  const signer = provider.kind.signer?.(provider);
  return Object.freeze(signer === undefined ? provider : { ...provider, signer });
}

function revealed(headers: NonNullable<ProviderSettings['headers']>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal()]));
}

function urlOf(kind: ProviderKind, { baseUrl, options }: ProviderSettings): string {
  return baseUrl ?? addressOf(kind, options);
}

/** The kind with the settings of one server: its formats, and quirks set in the configuration. */
function configured(kind: ProviderKind, settings: ProviderSettings): ProviderKind {
  const { speaks, strictTemplate, thinkTags, streamOptions, functionToolsOnly } = settings;
  const [first, ...others] = (speaks ?? []) as readonly FormatId[];
  const chat = {
    ...(strictTemplate && { strictTemplate }),
    ...(thinkTags !== undefined && { thinkTags }),
    ...(streamOptions !== undefined && { streamUsage: streamOptions }),
    ...(functionToolsOnly !== undefined && { customTools: !functionToolsOnly }),
  };
  const quirky = Object.keys(chat).length > 0;
  const batches =
    settings.batches === false
      ? undefined
      : kind.batchesAt?.({
          ...{ baseUrl: urlOf(kind, settings), options: settings.options },
          batches: settings.batches === true,
        });
  if (first === undefined && !quirky && batches === undefined) return kind;
  const { speaksFor: _speaksFor, ...rest } = kind;
  return {
    ...(first === undefined ? kind : { ...rest, speaks: first, alsoSpeaks: others }),
    ...(batches && { batches }),
    ...(quirky && {
      dialect: {
        ...kind.dialect,
        chat: { ...kind.dialect.chat, ...chat },
        ...(functionToolsOnly !== undefined && {
          responses: { ...kind.dialect.responses, tools: functionToolsOnly ? [] : 'all' },
        }),
      },
    }),
    ...(streamOptions !== undefined &&
      kind.completion && { completion: kind.completion.withStreamUsage(streamOptions) }),
  };
}
