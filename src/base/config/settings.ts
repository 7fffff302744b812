/** The configuration in memory: complete, typed, frozen. Names include units; `Secret` members never print. */
import type { Nano, Price } from '../money.ts';
import type { Secret } from '../secret.ts';
import type { BlobSettings } from './blobs.ts';
import type { ConsoleSettings } from './console.ts';
import type { EgressProxySettings } from './egress-proxy.ts';
import type { FederationPolicy } from './federation.ts';
import type { InternSettings } from './interns.ts';
import type { IoLoggingSettings } from './io-logging.ts';
import type { ModerationSettings } from './moderation.ts';
import type { OcrSettings } from './ocr.ts';
import type { OutgoingSettings } from './outgoing.ts';
import type { RateLimitSettings } from './rate-limits.ts';
import type { RoutingSettings } from './routing.ts';
import type { SandboxesSettings } from './sandboxes.ts';
import type { ScimSettings } from './scim.ts';
import type { TracingSettings } from './tracing.ts';
import type { InternProgrammeSettings, VaultSettings } from './vault.ts';
import type { WebSearchSettings } from './web-search.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** An environment variable that looks like a setting but is not one. */
export interface UnknownVariable {
  name: string;
  /** The setting that was probably meant. */
  suggested: string | null;
}

export interface Config {
  /** Path of the yaml file as given; null if there is none. */
  file: string | null;
  host: string;
  /** 0 lets the machine choose. */
  port: number;
  /** Address where other processes on the same database reach this one; null: follows from `host`. */
  peerHost: string | null;
  tls: TlsSettings | null;
  /** Absolute. */
  dataDir: string;
  workers: number;
  /** Prefix of names in responses: `svc` or an alias. */
  namespace: string;
  logLevel: LogLevel;
  /** Fraction of successful requests to log; null: no requests are logged. */
  requestLogShare: number | null;
  metrics: MetricsSettings;
  /** null: the gateway does not trace. */
  tracing: TracingSettings | null;
  /** Registry that `gatehouse catalog refresh` reads. */
  catalogUrl: string;
  /** null: the embedded PostgreSQL. */
  databaseUrl: Secret | null;
  /** Of commands that are clients of a gateway. */
  client: { url: string | null; key: Secret | null };
  /** Keys to create on the first start, if given. */
  firstKeys: { management: Secret | null; inference: Secret | null };
  unknownVariables: readonly UnknownVariable[];
  outgoing: OutgoingSettings;
  sealing: SealingSettings;
  account: AccountSettings;
  hosts: HostSettings;
  /** Addresses and networks whose `X-Forwarded-*` headers are trusted. */
  trustedProxies: readonly string[];
  egress: EgressSettings;
  egressProxy: EgressProxySettings;
  limits: Limits;
  retention: RetentionSettings;
  ioLogging: IoLoggingSettings;
  blobs: BlobSettings;
  scim: ScimSettings;
  vault: VaultSettings;
  webSearch: WebSearchSettings;
  /** null: the plugin `moderation` cannot be used. */
  moderation: ModerationSettings | null;
  /** null: the engine `mistral-ocr` of the plugin `file-parser` uses a provider of the kind `mistral` (`ocrOf`). */
  ocr: OcrSettings | null;
  /** The model that judges answers for the plugin `alignment`; null: the model of the request. */
  alignmentModel: string | null;
  /** Of new vector stores; null: their files are ranked by keywords only. */
  embeddingModel: string | null;
  sandboxes: SandboxesSettings;
  interns: InternSettings;
  /** null: every key, as long as its organization has a single member. */
  internProgramme: InternProgrammeSettings | null;
  console: ConsoleSettings;
  /** Policies for exchanging JWTs for access tokens; ids are unique. */
  federation: readonly FederationPolicy[];
  rateLimits: RateLimitSettings;
  routing: RoutingSettings;
  providers: readonly ProviderSettings[];
  /** Providers whose models answer by name next to `providers` and are not listed. */
  standIns: readonly ProviderSettings[];
}

/** Access to GET /metrics: with a management key or the token, public, or disabled. */
export interface MetricsSettings {
  access: 'key' | 'open' | 'off';
  token: Secret | null;
}

/** Source of the key-encryption key (`sealing/`). `variable`: the setting that defines it. */
export type KeySource =
  /** In base64. */
  | { kind: 'value'; variable: string; key: Secret }
  /** Absolute. Without a variable it is the default file, created when first needed. */
  | { kind: 'file'; variable?: string; path: string }
  /** Shell command that prints the key in base64. */
  | { kind: 'command'; variable: string; command: string };

export interface SealingSettings {
  current: KeySource;
  /** The key that values may still be encrypted with during a rotation. */
  previous: KeySource | null;
}

/** PEM texts. */
export interface TlsSettings {
  certificate: string;
  key: Secret;
}

/**
 * In which requests the gateway places prompt cache breakpoints for clients that set none: in no request, in those that it
 * translates, or in relayed ones too.
 */
export const PROMPT_CACHING_MODES = ['off', 'translated', 'always'] as const;
export type PromptCachingMode = (typeof PROMPT_CACHING_MODES)[number];

export interface AccountSettings {
  zdr: boolean;
  allowTraining: boolean;
  allowPublication: boolean;
  allowSafetyRetention: boolean;
  /** Where cache breakpoints are placed for clients that set none. */
  promptCaching: PromptCachingMode;
  /** null: unlimited. */
  balanceNano: Nano | null;
}

/** Host names of each regional root, in lower case. */
export interface HostSettings {
  global: readonly string[];
  europe: readonly string[];
  us: readonly string[];
}

/** Retention of accumulating data; null: forever. */
export interface RetentionSettings {
  /** Rows of generations, deleted by whole months. Their totals go with them, budgets stay. */
  generationsDays: number | null;
  /** How long stored responses are kept. */
  responsesDays: number;
  /** How long conversations are kept after they were last used. */
  conversationsDays: number | null;
}

/** Destinations beyond the public internet that URLs from users (images, documents) may have. */
export interface EgressSettings {
  /** Private addresses and networks that may be fetched from. */
  networks: readonly string[];
  /** Ports that may be fetched from, both ends included. */
  ports: readonly PortRange[];
}

export interface PortRange {
  from: number;
  to: number;
}

/** Bounds on everything that grows or waits: `limits` in the yaml, durations with their unit (`drain: 10s`). */
export interface Limits {
  /** Largest body of an inference request. */
  inferenceBodyBytes: number;
  /** Largest body of any other request. */
  controlBodyBytes: number;
  /** Deepest nesting of a JSON body. */
  nestingDepth: number;
  /** All request headers together. */
  headerBytes: number;
  headerCount: number;
  /** From the first byte of a request to the end of its headers. */
  headersArrivalMs: number;
  /** From the first byte of a request to the end of its body. */
  requestArrivalMs: number;
  /** How long an idle keep-alive connection stays open. */
  idleConnectionMs: number;
  /** How long everything is still served after SIGTERM, with `/ready` at 503, so that load balancers notice. */
  drainDelayMs: number;
  /** How long open responses may take to finish at shutdown. */
  drainMs: number;
  /** Silence on a stream after which a keep-alive comment is sent. */
  keepAliveCommentMs: number;
  /** Largest response of an upstream. */
  upstreamReplyBytes: number;
  /** Largest single event of an upstream's stream. */
  upstreamEventBytes: number;
  /** Media URLs fetched for one request whose provider accepts only bytes. */
  fetchedMedia: number;
  /** Largest of them. */
  fetchedMediumBytes: number;
  /** All of one request together. */
  fetchedMediaBytes: number;
  /** How long fetching all of them may take. */
  mediaFetchMs: number;
  /** Total size of the response cache over all processes; 0 disables it. */
  responseCacheBytes: number;
  /** Largest of them. */
  responseCacheAnswerBytes: number;
  /** Upstream turns of one request in which the gateway runs server tools. */
  serverToolTurns: number;
  /** Calls of server tools that one request may make. */
  serverToolCalls: number;
  /** How long one call may take. */
  serverToolCallMs: number;
  /** Largest result of one call. */
  serverToolResultBytes: number;
  /** Endpoints that are tried for one request. */
  candidates: number;
  /** Open client connections of one process. */
  connections: number;
  /** Requests of batches that run at once in one process. */
  batchRequests: number;
  /** Silence of a process after which the doctor suggests releasing what it holds of budgets. */
  unreturnedAfterMs: number;
}

export interface ProviderSettings {
  /** As in `provider.only`, lower case. */
  id: string;
  name: string;
  /** Id of a provider kind. */
  kind: string;
  /** Without a trailing slash; undefined: the kind's own address. */
  baseUrl: string | undefined;
  credentials: readonly Secret[];
  /**
   * Milliseconds. `firstByte`: dispatch to first body byte; `idle`: between body bytes; `stall`: with heartbeats only;
   * `total`: the whole call.
   */
  timeouts: { connect: number; firstByte: number; idle: number; stall: number; total: number };
  maxConcurrency: number;
  /** Options of its kind, by their names in the yaml. */
  options: Readonly<Record<string, string>>;
  /** Formats that it is called in, first the one for clients of other formats; null: those of its kind. */
  speaks: readonly string[] | null;
  /** Its chat template needs one leading system message and strictly alternating roles. */
  strictTemplate: boolean;
  /** Its responses may start with thinking between `<think>` and `</think>`; absent: as its kind says. */
  thinkTags?: boolean;
  /** It accepts `stream_options.include_usage`; absent: as its kind says. */
  streamOptions?: boolean;
  /** It accepts tools of type `function` only, in the chat and responses formats; absent: as its kind says. */
  functionToolsOnly?: boolean;
  /** The catalog's prices apply to it; absent: only at the kind's own address. */
  catalogPrices?: boolean;
  /** Its batch interface is used, if its kind has one; absent: yes. */
  batches?: boolean;
  /** Additional headers of its calls, names in lower case. */
  headers?: Readonly<Record<string, Secret>>;
  models: readonly ModelSettings[];
  /** No models are listed: every model of the kind's author is served, without a price and with unknown limits. */
  openEnded: boolean;
}

export interface ModelSettings {
  /** `author/slug`. */
  id: string;
  upstreamId: string;
  name: string | null;
  /** Further names for clients; absent: none. */
  aliases?: readonly string[];
  /** Formats that this model is called in, if they differ from its provider's; the default one first. */
  speaks?: readonly string[];
  contextLength: number | null;
  maxCompletionTokens: number | null;
  /** null: unknown, which is not free. */
  pricing: Pricing | null;
  /** In the provider's batch interface; absent: as the kind discounts the list price. */
  batchPricing?: Pricing;
  /** null: unknown. */
  inputModalities: readonly string[] | null;
  outputModalities: readonly string[] | null;
  /** null: unknown. */
  supportedParameters: readonly string[] | null;
  dataPolicy: DataPolicy;
  region: string | null;
  quantization: string | null;
  /** Further offerings of the model at their own prices; absent: none. */
  serviceTiers?: readonly ServiceTierSettings[];
}

/** `priority`, `flex`, `scale` or `ultrafast`, as in the request field `service_tier`. */
export interface ServiceTierSettings {
  name: ServiceTierName;
  pricing: Pricing;
}

export const SERVICE_TIERS = ['priority', 'flex', 'scale', 'ultrafast'] as const;
type ServiceTierName = (typeof SERVICE_TIERS)[number];

/** What a provider does with prompts. Unknown values count as the worst. */
export interface DataPolicy {
  zdr: boolean;
  trains: boolean;
  publishes: boolean;
  retainsForSafety: boolean;
}

/**
 * Prices that can be billed, by their wire names (`PublicPricing` in openapi.json). `discount`, cached audio and hourly prices
 * are missing: usage does not report them separately, and a displayed price must be the charged one.
 */
export const PRICE_NAMES = {
  prompt: 'prompt',
  completion: 'completion',
  request: 'request',
  image: 'image',
  image_token: 'imageToken',
  image_output: 'imageOutput',
  audio: 'audio',
  audio_output: 'audioOutput',
  input_cache_read: 'inputCacheRead',
  input_cache_write: 'inputCacheWrite',
  input_cache_write_1h: 'inputCacheWrite1h',
  internal_reasoning: 'internalReasoning',
  web_search: 'webSearch',
  input_character: 'inputCharacter',
  input_second: 'inputSecond',
  output_second: 'outputSecond',
} as const;

/** The prices that may differ for long prompts (`PricingOverride` in openapi.json). */
export const OVERRIDE_PRICE_NAMES = {
  prompt: 'prompt',
  completion: 'completion',
  audio: 'audio',
  input_cache_read: 'inputCacheRead',
  input_cache_write: 'inputCacheWrite',
  input_cache_write_1h: 'inputCacheWrite1h',
} as const satisfies Partial<typeof PRICE_NAMES>;

export type Prices = Partial<Record<(typeof PRICE_NAMES)[keyof typeof PRICE_NAMES], Price>>;

/**
 * USD per token; `request` per request, `image` per image of the prompt, `webSearch` per search; `inputCharacter` per character
 * to speak, `inputSecond` and `outputSecond` per started second of audio or video.
 */
export interface Pricing extends Prices {
  prompt: Price;
  completion: Price;
  overrides?: readonly PriceOverride[];
  /** Prices of generated images, if they are charged per image or by area. */
  outputImages?: readonly ImagePrice[];
}

/** The price of an image, or of each started megapixel (1024 x 1024). */
export interface ImagePrice {
  per: 'image' | 'megapixel';
  price: Price;
  /** Qualities and sizes of the price, such as `high` and `1024x1024`; empty: all that no other entry names. */
  variant: readonly string[];
}

/** Prices for prompts with more than `minPromptTokens`, including cached tokens. */
export interface PriceOverride {
  minPromptTokens: number;
  prices: Prices;
}
