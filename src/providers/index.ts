/**
 * Upstream services. A provider kind is code, one small file each, listed below; a provider is one configured instance
 * of a kind. Not here: which models they offer (`catalog/`), and what their bodies mean (`formats/`).
 */
import type { Config, ProviderSettings } from '../base/config.ts';
import type { FormatId } from '../formats/conversation/conversation.ts';
import { alibaba } from './alibaba.ts';
import { anthropic } from './anthropic.ts';
import { azure } from './azure.ts';
import { bedrock } from './bedrock.ts';
import { blackForest } from './black-forest.ts';
import { cerebras } from './cerebras.ts';
import { anyChat } from './chat.ts';
import { cohere } from './cohere.ts';
import { converse } from './converse.ts';
import { deepinfra } from './deepinfra.ts';
import { deepseek } from './deepseek.ts';
import { fal } from './fal.ts';
import { fireworks } from './fireworks.ts';
import { gemini } from './gemini.ts';
import { google } from './google.ts';
import { groq } from './groq.ts';
import { huggingface } from './huggingface.ts';
import { jina } from './jina.ts';
import { llamacpp } from './llamacpp.ts';
import { lmstudio } from './lmstudio.ts';
import { local } from './local.ts';
import { messages } from './messages.ts';
import { mistral } from './mistral.ts';
import { moonshot } from './moonshot.ts';
import { ollama } from './ollama.ts';
import { openai } from './openai.ts';
import { openrouter } from './openrouter.ts';
import { addressOf } from './own-way.ts';
import { perplexity } from './perplexity.ts';
import type { Provider, ProviderKind } from './provider.ts';
import { recraft } from './recraft.ts';
import { responses } from './responses.ts';
import { simulated } from './simulated.ts';
import { stability } from './stability.ts';
import { together } from './together.ts';
import { vertex } from './vertex.ts';
import { vllm } from './vllm.ts';
import { voyage } from './voyage.ts';
import { xai } from './xai.ts';
import { zai } from './zai.ts';

export { type Delivery, type DeliveryParts, deliver } from './deliver.ts';
export { Discovery, type LocalServer } from './discovery.ts';
export type { FrameReader, Framing } from './framing.ts';
export { outgoingOf } from './outgoing.ts';
export { addressOf, type OwnWay, ownWay, placeProblem } from './own-way.ts';
export { formsFor, type Provider, type ProviderKind, type Timeouts } from './provider.ts';
export type { Transport, UpstreamCall, UpstreamReceiver, UpstreamRequest } from './send.ts';
export { createTransport } from './send.ts';
export type { Signature, Signer, UnsignedCall } from './sign.ts';

/** Every kind, in the order in which environment variables enable them. `loadConfig` takes this list. */
export const KINDS: readonly ProviderKind[] = [
  openai,
  anthropic,
  alibaba,
  azure,
  bedrock,
  blackForest,
  cerebras,
  cohere,
  deepinfra,
  deepseek,
  fal,
  fireworks,
  google,
  groq,
  huggingface,
  jina,
  llamacpp,
  lmstudio,
  mistral,
  moonshot,
  ollama,
  openrouter,
  perplexity,
  recraft,
  stability,
  together,
  vertex,
  vllm,
  voyage,
  xai,
  zai,
  anyChat,
  converse,
  gemini,
  messages,
  responses,
  simulated,
  local,
];

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
    baseUrl: settings.baseUrl ?? addressOf(kind, settings.options),
    options: settings.options,
    credentials: Object.freeze(settings.credentials.map((credential) => credential.reveal())),
    ...(settings.headers && { headers: revealed(settings.headers) }),
    timeouts: settings.timeouts,
    maxConcurrency: settings.maxConcurrency,
  };
  const signer = provider.kind.signer?.(provider);
  return Object.freeze(signer === undefined ? provider : { ...provider, signer });
}

function revealed(headers: NonNullable<ProviderSettings['headers']>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal()]));
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
  if (first === undefined && !quirky) return kind;
  const { speaksFor: _speaksFor, ...rest } = kind;
  return {
    ...(first === undefined ? kind : { ...rest, speaks: first, alsoSpeaks: others }),
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
