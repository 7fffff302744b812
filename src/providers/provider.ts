/**
 * A provider: where to send, how to sign, which format it speaks, its quirks. `ProviderKind` is code (one small file
 * each, in `kinds/`); `Provider` is a configured instance of a kind, from `gatehouse.yaml` or the environment.
 */
import type { Body } from '../base/body.ts';
import type { KindFacts, ModelSettings, OptionFacts } from '../base/config.ts';
import type { CompletionAdapter } from '../formats/completion/index.ts';
import type { FormatId, ReasoningOrigin } from '../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { Dialect, TokenCount } from '../formats/conversation/format.ts';
import type { NativeTool } from '../formats/conversation/native-tool.ts';
import type { DirectFormatId } from '../formats/direct/index.ts';
import type { EmbeddingAdapter } from '../formats/embedding/index.ts';
import type { ImageAdapter } from '../formats/image/index.ts';
import type { ModerationAdapter } from '../formats/moderation/index.ts';
import type { RerankAdapter } from '../formats/rerank/index.ts';
import type { SpeechAdapter } from '../formats/speech/index.ts';
import type { TranscriptionAdapter } from '../formats/transcription/index.ts';
import type { VideoAdapter } from '../formats/video/index.ts';
import type { Signer } from './auth/sign.ts';
import type { BatchService } from './batches/contract.ts';
import type { Framing } from './framing/framing.ts';
import type { LocalDiscovery } from './local-models.ts';
import type { StreamedBody, Timeouts, Transport } from './send/transport.ts';

/** Facts about a public service, as the catalog and BYOK need them. */
interface Service {
  /**
   * `vendor`: it offers only models of its own author. `host`: models of many authors, under its own names. `router`:
   * models of many, named `author/model`.
   */
  role: 'vendor' | 'host' | 'router';
  /** Its id in the model registry that `catalog refresh` reads (models.dev); null if its rows there are not used. */
  registryId: string | null;
  /** Other slugs by which public clients know the service. */
  aliases?: readonly string[];
  /** As OpenRouter's `GET /providers` states them. Unknown if absent. */
  policies?: {
    privacyPolicyUrl: string;
    termsOfServiceUrl: string;
    statusPageUrl: string;
    /** ISO 3166-1 alpha-2. */
    headquarters: string;
  };
}

export interface ProviderKind {
  /** `kind` in the yaml. */
  id: string;
  /** Display name, `provider` on the wire. */
  name: string;
  /** Format for clients of other formats. Absent: it serves no conversations. */
  speaks?: FormatId;
  /** Further formats at the same base URL, for relaying to their clients. */
  alsoSpeaks?: readonly FormatId[];
  /** Formats that depend on the model, the one for clients of other formats first. Overrides both members above. */
  speaksFor?(upstreamModel: string): readonly FormatId[];
  /** Absent for kinds without a public URL (a bare format); a function if the URL depends on the options. */
  baseUrl?: string | ((options: Readonly<Record<string, string>>) => string);
  /**
   * Environment variable of the credential; `<NAME>_FILE` is read too. If set, the provider is enabled without
   * configuration.
   */
  environment?: string;
  /** Alternative variables, for services whose own tools read several. */
  alsoEnvironment?: readonly string[];
  /** Settings of an instance besides base URL and credential (a project, a region), each a member in the yaml. */
  options?: Readonly<Record<string, OptionFacts>>;
  /** The credential is a JSON document, such as a key file, rather than a header value. */
  credentialDocument?: boolean;
  /** Which JSON document customers may enter as a BYOK credential, besides or instead of a plain key. */
  byokDocument?: 'google-account' | 'aws-keys' | 'azure-key';
  /**
   * Splits a stored BYOK credential into what calls carry and the options it implies, such as the project of a key
   * file. Absent: calls carry the whole credential.
   */
  splitByok?(value: string): { credential: string; options: Readonly<Record<string, string>> };
  /** Author prefix of its models if enabled by the environment, e.g. `openai`. */
  author?: string;
  /** Bare model names that belong to it (`gpt-4o`), for clients that change only the base URL. */
  bareModels?: RegExp;
  /** Absent for bare formats, for servers that anyone may run, and for kinds in this process. */
  service?: Service;
  /**
   * Row of `docs/reference/providers.md`. `verifiedBy`: tested with recorded traffic, or with bodies written from the
   * service's documentation. `quirks` is Markdown.
   */
  guide?: { verifiedBy: 'recording' | 'documentation'; quirks: string };
  /** Path below the base URL, if it differs from the format's. Model names in it are percent-encoded. */
  path?(delivery: Delivery): string | undefined;
  /** Headers with the credential and the format's constants. Built from scratch, so no client header leaks in. */
  headers(credential: string | null): Record<string, string>;
  /** Signs calls, for kinds that need more than static headers. Created once per configured provider. */
  signer?(provider: Provider): Signer;
  /** Framing of a format's streams, if not server-sent events. */
  framing?(format: FormatId | DirectFormatId): Framing | undefined;
  /** Decodes a reply with an error status, if its errors differ from those of the formats it speaks. */
  decodeFailure?(status: number, body: string, headers?: Readonly<Record<string, string>>): UpstreamFailure;
  /** Client request headers that the provider receives, lower case (e.g. `anthropic-beta`). Default none. */
  forwards?: readonly string[];
  origin: ReasoningOrigin;
  /** Origin by model. Overrides `origin`. */
  originFor?(upstreamModel: string): ReasoningOrigin;
  dialect: Dialect;
  /** Server tools that it has itself (`native-tools.ts`). Absent: none. */
  nativeTools?: readonly NativeTool[];
  /**
   * Set if it can count tokens: with its format's operation (`SpokenFormat.tokenCount`), or with its own for the models
   * that this returns an operation for, in the format used for counting.
   */
  countsTokens?: true | ((upstreamModel: string) => { format: FormatId; counting: TokenCount } | undefined);
  /** Embeddings adapter; absent if unsupported. */
  embedding?: EmbeddingAdapter;
  /** Rerank adapter; absent if unsupported. */
  rerank?: RerankAdapter;
  /** Text completion adapter; absent if it serves only conversations. */
  completion?: CompletionAdapter;
  /** Image adapter. */
  image?: ImageAdapter;
  /** Text to speech adapter. */
  speech?: SpeechAdapter;
  /** Speech to text adapter. */
  transcription?: TranscriptionAdapter;
  /** Moderation adapter. */
  moderation?: ModerationAdapter;
  /** Adapter for videos. */
  video?: VideoAdapter;
  /** Its interface for batches; absent: requests of batches are sent one by one. */
  batches?: BatchService;
  /** Its interface for batches at a server, if that depends on the configuration; undefined: it has none there. */
  batchesAt?(server: BatchServer): BatchService | undefined;
  /** What is wrong with the settings of batches; undefined if nothing. */
  batchProblem?: KindFacts['batchProblem'];
  /** Absent for software that is not looked for on this machine. */
  discovery?: LocalDiscovery;
  /** Transport of in-process providers (`simulated`), instead of the network. */
  transport?: Transport;
  /** Built-in models, for configurations that list none. */
  models?: readonly ModelSettings[];
  /** Enabled if no other provider is configured; otherwise its models are unlisted and available by name only. */
  standIn?: boolean;
  /** Variable that disables the stand-in if set to `off`. */
  standInSwitch?: string;
}

/** What decides on the batch interface of a server. `batches`: the configuration says `batches: true`. */
export type BatchServer = Pick<Provider, 'baseUrl' | 'options'> & { batches: boolean };

/**
 * Formats for one model of a provider, best first: the client's own if supported, then the usual one, then others. The
 * configuration (`modelFormats`) overrides the kind.
 */
export function formatsFor(
  kind: ProviderKind,
  upstreamModel: string,
  client: FormatId,
  modelFormats?: readonly FormatId[],
): readonly FormatId[] {
  const formats = modelFormats ?? kind.speaksFor?.(upstreamModel);
  const usual = kind.speaks === undefined ? [] : [kind.speaks];
  if (formats === undefined && kind.alsoSpeaks === undefined) return usual;
  const all = formats ?? [...usual, ...kind.alsoSpeaks!];
  return all.includes(client) ? [client, ...all.filter((format) => format !== client)] : all;
}

export interface Provider {
  /** As in `provider.only`, lower case. */
  id: string;
  name: string;
  kind: ProviderKind;
  baseUrl: string;
  /** Values by the names of the kind's `options`. */
  options: Readonly<Record<string, string>>;
  /** Calls are spread over several; each has its own cooldown. Empty: calls carry no credential. */
  credentials: readonly string[];
  /** Additional configured headers of every call; names in lower case. */
  headers?: Readonly<Record<string, string>>;
  timeouts: Timeouts;
  maxConcurrency: number;
  /** False: its batch interface is not used. */
  batches?: false;
  /** Absent: the kind's headers are sufficient. */
  signer?: Signer;
}

/** One call to a provider. */
export interface Delivery {
  provider: Provider;
  credential: string | null;
  /** The format of the body. */
  format: FormatId | DirectFormatId;
  /** The upstream's name of the model. */
  model: string;
  stream: boolean;
  /** The format's path below the base URL; the kind may override it. */
  path: string;
  body: Body;
  /** Set for an operation other than the format's main one, so that the kind can choose its path. */
  operation?: 'countTokens' | 'models' | 'files' | 'batches' | 'bucket';
  /** Replaces `body`; only where no signature covers it. */
  streamed?: StreamedBody;
  /** Default POST. */
  method?: 'PUT' | 'GET' | 'DELETE';
  /** Content type of the body; default JSON. */
  contentType?: string;
  /** Further headers of the operation, lower case. */
  headers?: Readonly<Record<string, string>>;
  /** Replaces base URL and path, for a URL from the service itself; the caller has checked its host. */
  url?: string;
  /** Headers of the client's request, lower case. Only those that the kind forwards are sent. */
  clientHeaders?: Readonly<Record<string, string | string[] | undefined>>;
}
