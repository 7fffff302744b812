/** The configuration as the program sees it: complete, typed, frozen. Units stand in the names; `Secret` members never print. */
import type { Nano, Price } from '../money.ts';
import type { Secret } from '../secret.ts';
import type { FederationPolicy } from './federation.ts';
import type { IoLoggingSettings } from './io-logging.ts';
import type { OutgoingSettings } from './outgoing.ts';
import type { RateLimitSettings } from './rate-limits.ts';
import type { RoutingSettings } from './routing.ts';
import type { ScimSettings } from './scim.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** A variable of the environment that looks like a setting and is none. */
export interface UnknownVariable {
  name: string;
  /** The setting that was probably meant. */
  meant: string | null;
}

export interface Config {
  /** The yaml file that was read, as it was named; null when there is none. */
  file: string | null;
  host: string;
  /** 0 lets the machine choose. */
  port: number;
  tls: TlsSettings | null;
  /** Absolute. */
  dataDir: string;
  workers: number;
  /** Token that stands for our own name in what we emit. */
  namespace: string;
  logLevel: LogLevel;
  /** Share of the requests that went well that the log has a line for; null: it has none for any request. */
  requestLogShare: number | null;
  metrics: MetricsSettings;
  /** Registry that `gatehouse catalog refresh` reads. */
  catalogUrl: string;
  /** null: the embedded PostgreSQL. */
  databaseUrl: Secret | null;
  /** Become the first keys on the first start, when given. */
  firstKeys: { management: Secret | null; inference: Secret | null };
  unknownVariables: readonly UnknownVariable[];
  outgoing: OutgoingSettings;
  sealing: SealingSettings;
  account: AccountSettings;
  hosts: HostSettings;
  /** Addresses and networks whose `X-Forwarded-*` headers count. */
  trustedProxies: readonly string[];
  egress: EgressSettings;
  limits: Limits;
  retention: RetentionSettings;
  ioLogging: IoLoggingSettings;
  scim: ScimSettings;
  /** Whose JWTs are exchanged for access tokens; ids differ. */
  federation: readonly FederationPolicy[];
  rateLimits: RateLimitSettings;
  routing: RoutingSettings;
  providers: readonly ProviderSettings[];
  /** Providers whose models answer by name next to `providers` and are not listed. */
  standIns: readonly ProviderSettings[];
}

/** Who may read GET /metrics: who has a management key or the token, everybody, or nobody. */
export interface MetricsSettings {
  access: 'key' | 'open' | 'off';
  token: Secret | null;
}

/** Where a key is that values are sealed under in the end (`sealing/`). `variable`: the setting that says so. */
export type KeySource =
  /** In base64. */
  | { kind: 'value'; variable: string; key: Secret }
  /** Absolute. Without a variable it is the usual one, which is made when it is first needed. */
  | { kind: 'file'; variable?: string; path: string }
  /** Of the shell; prints the key in base64. */
  | { kind: 'command'; variable: string; command: string };

export interface SealingSettings {
  current: KeySource;
  /** What the database may still be sealed under, while one key takes the place of another. */
  previous: KeySource | null;
}

/** PEM texts. */
export interface TlsSettings {
  certificate: string;
  key: Secret;
}

/** What every guardrail inherits. */
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

/** Host names, lower case, under which each regional root answers. */
export interface HostSettings {
  global: readonly string[];
  europe: readonly string[];
  us: readonly string[];
}

/** How long what accumulates is kept; null: for ever. */
export interface RetentionSettings {
  /** Rows of generations, which go by whole months. Sums and budgets stay. */
  generationsDays: number | null;
}

/** Where addresses that users give (images, documents) may lead, beyond the public internet. */
export interface EgressSettings {
  /** Addresses and networks that are not public and may be fetched from all the same. */
  networks: readonly string[];
  /** Ports that may be fetched from, both ends included. */
  ports: readonly PortRange[];
}

export interface PortRange {
  from: number;
  to: number;
}

/** A bound on everything that grows or waits. The yaml has them under `limits`, durations with their unit (`drain: 10s`). */
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
  /** How long a kept-alive connection may stay without a request. */
  idleConnectionMs: number;
  /** How long everything is still served after SIGTERM, with `/ready` at 503, so that load balancers notice. */
  drainDelayMs: number;
  /** How long open answers may take to end when the process is asked to stop. */
  drainMs: number;
  /** Silence on a stream after which a comment goes out. */
  keepAliveCommentMs: number;
  /** Largest whole answer of an upstream. */
  upstreamReplyBytes: number;
  /** Largest single event of an upstream's stream. */
  upstreamEventBytes: number;
  /** Pictures, documents and sounds that are fetched for one request because its provider takes only bytes. */
  fetchedMedia: number;
  /** Largest of them. */
  fetchedMediumBytes: number;
  /** All of one request together. */
  fetchedMediaBytes: number;
  /** How long fetching all of them may take. */
  mediaFetchMs: number;
  /** Answers of the response cache, all together and over all processes; 0 turns it off. */
  responseCacheBytes: number;
  /** Largest of them. */
  responseCacheAnswerBytes: number;
  /** Endpoints that are tried for one request. */
  candidates: number;
  /** Open client connections of one process. */
  connections: number;
  /** Without a sign of life for this long, the doctor suggests to release what a process holds of budgets. */
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
  /** What its kind must know beside these, by the yaml's names. */
  options: Readonly<Record<string, string>>;
  /** The forms in which it is asked, the one for clients of other forms first; null: as its kind says. */
  speaks: readonly string[] | null;
  /** Its chat template takes one leading system message and strict alternation. */
  strictTemplate: boolean;
  /** Its answers may begin with their thinking between `<think>` and `</think>`; absent: as its kind says. */
  thinkTags?: boolean;
  /** Its streams take `stream_options.include_usage`; absent: as its kind says. */
  streamOptions?: boolean;
  /** It takes tools of type `function` only, in the chat and responses formats; absent: as its kind says. */
  functionToolsOnly?: boolean;
  /** The catalog's prices hold for it; absent: only at the kind's own address. */
  catalogPrices?: boolean;
  /** Further headers of its calls, names in lower case. */
  headers?: Readonly<Record<string, Secret>>;
  models: readonly ModelSettings[];
  /** No models are listed: every name of the kind's author is served, without a price and with unknown limits. */
  openEnded: boolean;
}

export interface ModelSettings {
  /** `author/slug`. */
  id: string;
  upstreamId: string;
  name: string | null;
  /** The forms in which this model is asked, where they are not those of its provider; the usual one first. */
  speaks?: readonly string[];
  contextLength: number | null;
  maxCompletionTokens: number | null;
  /** null: unknown, which is not free. */
  pricing: Pricing | null;
  /** null: unknown. */
  inputModalities: readonly string[] | null;
  outputModalities: readonly string[] | null;
  /** null: unknown. */
  supportedParameters: readonly string[] | null;
  dataPolicy: DataPolicy;
  region: string | null;
  quantization: string | null;
  /** Further offerings of it at prices of their own; absent: none. */
  serviceTiers?: readonly ServiceTierSettings[];
}

/** `priority`, `flex`, `scale` or `ultrafast`, as in the request field `service_tier`. */
export interface ServiceTierSettings {
  name: ServiceTierName;
  pricing: Pricing;
}

export const SERVICE_TIERS = ['priority', 'flex', 'scale', 'ultrafast'] as const;
export type ServiceTierName = (typeof SERVICE_TIERS)[number];

/** What a provider does with prompts. Whatever is unknown counts as the worst. */
export interface DataPolicy {
  zdr: boolean;
  trains: boolean;
  publishes: boolean;
  retainsForSafety: boolean;
}

/**
 * Prices that can be billed, by their wire name (wire/models.md, PublicPricing). `discount`, cached sound and prices by the
 * hour are not among them: usage does not tell them apart, and a price that is shown but not charged would be a lie.
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
} as const;

/** Those that another price for long prompts may replace (wire/models.md, PricingOverride). */
export const OVERRIDE_PRICE_NAMES = {
  prompt: 'prompt',
  completion: 'completion',
  audio: 'audio',
  input_cache_read: 'inputCacheRead',
  input_cache_write: 'inputCacheWrite',
  input_cache_write_1h: 'inputCacheWrite1h',
} as const satisfies Partial<typeof PRICE_NAMES>;

export type Prices = Partial<Record<(typeof PRICE_NAMES)[keyof typeof PRICE_NAMES], Price>>;

/** USD per token; `request` per request, `image` per image of the prompt, `webSearch` per search. */
export interface Pricing extends Prices {
  prompt: Price;
  completion: Price;
  overrides?: readonly PriceOverride[];
  /** Pictures that the model makes, where they are charged by the piece or by their area. */
  outputImages?: readonly ImagePrice[];
}

/** What one picture costs, or each begun million (1024 x 1024) of its pixels. */
export interface ImagePrice {
  per: 'image' | 'megapixel';
  price: Price;
  /** Qualities and sizes that the price is for, such as `high` and `1024x1024`; empty: for all that no other names. */
  variant: readonly string[];
}

/** Prices that hold instead when a prompt, caches included, has more than `minPromptTokens`. */
export interface PriceOverride {
  minPromptTokens: number;
  prices: Prices;
}
