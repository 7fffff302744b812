/** Readers of `providers` and what is below it. */
import { Secret } from '../secret.ts';
import type { Field, Reader } from './field.ts';
import { headers } from './header-reader.ts';
import { kindNamed, type Options, optionReaders, optionsRead } from './kind-options.ts';
import { distinct, duration, flag, integer, list, mapping, oneOf, price, text, textLike } from './readers.ts';
import {
  type ImagePrice,
  type ModelSettings,
  OVERRIDE_PRICE_NAMES,
  PRICE_NAMES,
  type PriceOverride,
  type Prices,
  type Pricing,
  type ProviderSettings,
  SERVICE_TIERS,
  type ServiceTierSettings,
} from './settings.ts';

/** The part of a provider kind that the configuration needs; `providers/provider.ts` has the rest. */
export interface KindFacts {
  id: string;
  name: string;
  /** Variable of the credential. Setting it enables the provider. */
  environment?: string;
  /** Further variables of the credential, for services whose own tools read several. */
  alsoEnvironment?: readonly string[];
  /** A function if the address depends on the options. */
  baseUrl?: string | ((options: Readonly<Record<string, string>>) => string);
  /** Members of its own in the yaml. */
  options?: Options;
  /** Its batch interface, and the one that only some of its servers have. */
  batches?: unknown;
  batchesAt?: unknown;
  /** What is wrong with the settings of batches; undefined if nothing. */
  batchProblem?(settings: Pick<ProviderSettings, 'baseUrl' | 'options' | 'batches'>): string | undefined;
  /** Its credential is a JSON document, such as a key file, not a header value. */
  credentialDocument?: boolean;
  /** Author of the models that it serves if none are listed. */
  author?: string;
  /** Models that it ships. */
  models?: readonly ModelSettings[];
  /** Runs inside the process: has no address. */
  transport?: unknown;
  /** Enabled if no other provider is; otherwise its models are not listed but still answer by name. */
  standIn?: boolean;
  /** Variable that disables it with the value `off`. */
  standInSwitch?: string;
  /** The default format of conversations, and further ones. */
  speaks?: string;
  alsoSpeaks?: readonly string[];
}

export const DEFAULT_TIMEOUTS = Object.freeze({
  connect: 5_000,
  firstByte: 60_000,
  idle: 60_000,
  stall: 300_000,
  total: 600_000,
});
export const DEFAULT_MAX_CONCURRENCY = 500;
/** Unknown is the worst. */
export const UNKNOWN_DATA_POLICY = Object.freeze({ zdr: false, trains: true, publishes: true, retainsForSafety: true });

/** Valid in a header, without characters that could end the header. */
export const CREDENTIAL = /^[\x21-\x7e]{1,8192}$/;

const PROVIDER_ID = textLike(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'lower-case letters, digits, dots, dashes and underscores');
const MODEL_ID = textLike(/^[A-Za-z0-9~._:@+-]{1,128}\/[A-Za-z0-9~._:@+/-]{1,200}$/, 'of the form author/slug');
/** Of a model; without control characters, because it appears in logs. */
export const MODEL_ALIAS = /^[^\p{Cc}\p{Cf}\s](?:[^\p{Cc}\p{Cf}]{0,198}[^\p{Cc}\p{Cf}\s])?$/u;
const ALIAS = textLike(MODEL_ALIAS, 'a name of up to 200 characters, without spaces around it');
const WORD = textLike(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'a lower-case word');

export function readProviders(field: Field, kinds: readonly KindFacts[]): ProviderSettings[] {
  const firstUse = new Map<string, string>();
  const aliases: Aliases = new Map();
  const providers = list((item) => {
    const provider = readProvider(item, kinds, aliases);
    if (!provider) return undefined;
    const other = firstUse.get(provider.id);
    if (other !== undefined) return item.fail(`has the id of ${other}; ids must be unique`);
    firstUse.set(provider.id, item.path);
    return provider;
  })(field);
  return [...(providers ?? [])];
}

function batchProblemOf(
  kind: KindFacts,
  settings: Pick<ProviderSettings, 'baseUrl' | 'options' | 'batches'>,
  kinds: readonly KindFacts[],
): string | undefined {
  const has = (one: KindFacts) => one.batches !== undefined || one.batchesAt !== undefined;
  if (has(kind) || settings.batches !== true) return kind.batchProblem?.(settings);
  const others = kinds.filter(has).map(({ id }) => id);
  return `has batches: true, but the kind ${kind.id} has no batch interface; kinds with one: ${others.join(', ')}`;
}

/** Ids of models by their aliases. Several providers may state an alias of the same model. */
type Aliases = Map<string, string>;

function readProvider(field: Field, kinds: readonly KindFacts[], aliases: Aliases): ProviderSettings | undefined {
  const before = field.source.problems.length;
  const speaks = forms(kinds);
  const named = kindNamed(field, kinds);
  const read = mapping(
    field,
    {
      id: PROVIDER_ID,
      name: text,
      kind: oneOf(kinds.map((kind) => kind.id)),
      base_url: baseUrl,
      api_key: named?.credentialDocument ? documents : credentials,
      timeouts,
      max_concurrency: integer(1, 1_000_000),
      headers,
      strict_template: flag,
      think_tags: flag,
      stream_options: flag,
      catalog_prices: flag,
      batches: flag,
      function_tools_only: flag,
      speaks,
      models: models(speaks, aliases),
      ...(optionReaders(named?.options) as Record<never, never>),
    },
    ['id', 'kind'],
  );
  const kind = kinds.find(({ id }) => id === read?.kind);
  if (!read?.id || !kind) return undefined;
  if (read.base_url === undefined && kind.baseUrl === undefined && kind.transport === undefined) {
    if (field.source.problems.length === before)
      field.fail(`needs the member base_url, as the kind ${kind.id} has no address`);
  }
  const options = optionsRead(kind.options, read);
  const batches = read.batches !== undefined && { batches: read.batches };
  const problem = batchProblemOf(kind, { baseUrl: read.base_url, options, ...batches }, kinds);
  if (problem !== undefined && field.source.problems.length === before) field.fail(problem);
  const listed = read.models ?? kind.models;
  if (listed === undefined && kind.author === undefined && field.source.problems.length === before) {
    field.fail(`needs the member models, as the kind ${kind.id} has no models of its own`);
  }
  return {
    id: read.id,
    name: read.name ?? (read.id === kind.id ? kind.name : read.id),
    kind: kind.id,
    baseUrl: read.base_url,
    credentials: read.api_key ?? [],
    timeouts: read.timeouts ?? DEFAULT_TIMEOUTS,
    maxConcurrency: read.max_concurrency ?? DEFAULT_MAX_CONCURRENCY,
    options,
    strictTemplate: read.strict_template ?? false,
    ...(read.headers !== undefined && { headers: read.headers }),
    ...(read.think_tags !== undefined && { thinkTags: read.think_tags }),
    ...(read.stream_options !== undefined && { streamOptions: read.stream_options }),
    ...(read.function_tools_only !== undefined && { functionToolsOnly: read.function_tools_only }),
    ...(read.catalog_prices !== undefined && { catalogPrices: read.catalog_prices }),
    ...batches,
    speaks: read.speaks ?? null,
    models: listed ?? [],
    openEnded: listed === undefined,
  };
}

/** A list of formats that some kind of provider speaks. */
function forms(kinds: readonly KindFacts[]): Reader<readonly string[]> {
  const known = [
    ...new Set(kinds.flatMap(({ speaks, alsoSpeaks }) => [...(speaks ? [speaks] : []), ...(alsoSpeaks ?? [])])),
  ];
  return (field) => {
    const read = distinct(oneOf(known))(field);
    return read?.length === 0 ? field.fail('must name at least one format') : read;
  };
}

/** Without a trailing slash. */
export function baseUrl(field: Field): string | undefined {
  const value = text(field);
  if (value === undefined) return undefined;
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) return field.fail('must be an http or https URL');
  if (url.username !== '' || url.password !== '')
    return field.fail('must not contain a credential; use api_key or token');
  if (url.search !== '' || url.hash !== '') return field.fail('must not have a query or a fragment');
  return url.href.replace(/\/+$/, '');
}

function credentials(field: Field): Secret[] | undefined {
  const one = textLike(CREDENTIAL, 'a text without spaces or control characters, as a header carries it');
  if (Array.isArray((field.node as { items?: unknown }).items)) {
    return distinct(one)(field)?.map((value) => new Secret(value));
  }
  const value = one(field);
  return value === undefined ? undefined : [new Secret(value)];
}

/** One key file, or those of several accounts. */
function documents(field: Field): Secret[] | undefined {
  const one = (item: Field): Secret | undefined => {
    const value = text(item);
    if (value === undefined) return undefined;
    try {
      const document: unknown = JSON.parse(value);
      if (typeof document === 'object' && document !== null) return new Secret(value);
    } catch {
      // Reported below.
    }
    return item.fail('must be the content of a JSON key file');
  };
  if (Array.isArray((field.node as { items?: unknown }).items)) {
    const read = list(one)(field);
    return read && [...read];
  }
  const value = one(field);
  return value && [value];
}

function timeouts(field: Field): ProviderSettings['timeouts'] | undefined {
  const read = mapping(field, {
    connect: duration,
    first_byte: duration,
    idle: duration,
    stall: duration,
    total: duration,
  });
  if (!read) return undefined;
  return {
    connect: read.connect ?? DEFAULT_TIMEOUTS.connect,
    firstByte: read.first_byte ?? DEFAULT_TIMEOUTS.firstByte,
    idle: read.idle ?? DEFAULT_TIMEOUTS.idle,
    stall: read.stall ?? DEFAULT_TIMEOUTS.stall,
    total: read.total ?? DEFAULT_TIMEOUTS.total,
  };
}

function models(speaks: Reader<readonly string[]>, aliases: Aliases): Reader<readonly ModelSettings[]> {
  return (field) => {
    const firstUse = new Map<string, string>();
    return list((item) => {
      const model = readModel(item, speaks);
      if (!model) return undefined;
      const other = firstUse.get(model.id);
      if (other !== undefined) return item.fail(`has the id of ${other}; a provider can list a model only once`);
      firstUse.set(model.id, item.path);
      for (const alias of model.aliases ?? []) {
        const owner = aliases.get(alias);
        if (owner !== undefined && owner !== model.id) return item.fail(`has an alias that the model ${owner} has too`);
        aliases.set(alias, model.id);
      }
      return model;
    })(field);
  };
}

function readModel(field: Field, speaks: Reader<readonly string[]>): ModelSettings | undefined {
  const read = mapping(
    field,
    {
      id: MODEL_ID,
      upstream_id: text,
      name: text,
      aliases: distinct(ALIAS),
      speaks,
      context_length: integer(1),
      max_completion_tokens: integer(1),
      pricing,
      batch_pricing: pricing,
      input_modalities: distinct(WORD),
      output_modalities: distinct(WORD),
      supported_parameters: distinct(WORD),
      data_policy: dataPolicy,
      region: WORD,
      quantization: WORD,
      service_tiers: serviceTiers,
    },
    ['id'],
  );
  if (!read?.id) return undefined;
  return {
    id: read.id,
    upstreamId: read.upstream_id ?? read.id.slice(read.id.indexOf('/') + 1),
    name: read.name ?? null,
    ...(read.aliases !== undefined && { aliases: read.aliases }),
    ...(read.speaks !== undefined && { speaks: read.speaks }),
    contextLength: read.context_length ?? null,
    maxCompletionTokens: read.max_completion_tokens ?? null,
    pricing: read.pricing ?? null,
    ...(read.batch_pricing && { batchPricing: read.batch_pricing }),
    inputModalities: read.input_modalities ?? null,
    outputModalities: read.output_modalities ?? null,
    supportedParameters: read.supported_parameters ?? null,
    dataPolicy: read.data_policy ?? UNKNOWN_DATA_POLICY,
    region: read.region ?? null,
    quantization: read.quantization ?? null,
    ...(read.service_tiers && { serviceTiers: read.service_tiers }),
  };
}

function serviceTiers(field: Field): ServiceTierSettings[] | undefined {
  const tier = (item: Field) => mapping(item, { pricing }, ['pricing'])?.pricing;
  const read = mapping(field, { priority: tier, flex: tier, scale: tier, ultrafast: tier });
  if (!read) return undefined;
  return SERVICE_TIERS.flatMap((name) => (read[name] === undefined ? [] : [{ name, pricing: read[name] }]));
}

function dataPolicy(field: Field): ModelSettings['dataPolicy'] | undefined {
  const read = mapping(field, { zdr: flag, trains: flag, publishes: flag, retains_for_safety: flag });
  if (!read) return undefined;
  return {
    zdr: read.zdr ?? UNKNOWN_DATA_POLICY.zdr,
    trains: read.trains ?? UNKNOWN_DATA_POLICY.trains,
    publishes: read.publishes ?? UNKNOWN_DATA_POLICY.publishes,
    retainsForSafety: read.retains_for_safety ?? UNKNOWN_DATA_POLICY.retainsForSafety,
  };
}

type PriceNames = Readonly<Record<string, keyof Prices>>;

/** A reader for each price by its wire name. */
function shapeOf<N extends PriceNames>(names: N): { [Name in keyof N]: typeof price } {
  return Object.fromEntries(Object.keys(names).map((name) => [name, price])) as { [Name in keyof N]: typeof price };
}

/** The given prices, by their internal names. */
function given(read: Record<string, unknown>, names: PriceNames): Prices {
  return Object.fromEntries(
    Object.entries(names).flatMap(([wire, name]) => (read[wire] === undefined ? [] : [[name, read[wire]]])),
  );
}

function pricing(field: Field): Pricing | undefined {
  const shape = { ...shapeOf(PRICE_NAMES), overrides: list(override), output_images: list(imagePrice) };
  const read = mapping(field, shape, ['prompt', 'completion']);
  const prices = given(read ?? {}, PRICE_NAMES);
  if (!read || prices.prompt === undefined || prices.completion === undefined) return undefined;
  const { prompt, completion } = prices;
  return {
    ...prices,
    prompt,
    completion,
    ...(read.overrides !== undefined && { overrides: read.overrides }),
    ...(read.output_images !== undefined && { outputImages: read.output_images }),
  };
}

function imagePrice(field: Field): ImagePrice | undefined {
  const variant = textLike(
    /^\S+(?: \S+)*$/,
    'qualities and sizes with one space between them, such as "high 1024x1024"',
  );
  const read = mapping(field, { price, per: oneOf(['image', 'megapixel'] as const), variant }, ['price']);
  if (read?.price === undefined) return undefined;
  return { price: read.price, per: read.per ?? 'image', variant: read.variant?.split(' ') ?? [] };
}

function override(field: Field): PriceOverride | undefined {
  const shape = { min_prompt_tokens: integer(0) };
  const read = mapping(field, { ...shapeOf(OVERRIDE_PRICE_NAMES), ...shape }, ['min_prompt_tokens']);
  if (read?.min_prompt_tokens === undefined) return undefined;
  return { minPromptTokens: read.min_prompt_tokens, prices: given(read, OVERRIDE_PRICE_NAMES) };
}
