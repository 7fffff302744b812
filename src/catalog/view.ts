/** Wire views of the catalog. Pure. Unknown values are never invented: `schema.ts` documents their placeholders. */
import { OVERRIDE_PRICE_NAMES, PRICE_NAMES, type Prices, type Pricing } from '../base/config.ts';
import { textFromPrice } from '../base/money.ts';
import type { Provider } from '../providers/index.ts';
import type { Endpoint, LatestModel, Model } from './catalog.ts';
import type { EndpointView, ModelEndpointsView, ModelView, PricingView, ProviderListView } from './schema.ts';
import { type EndpointFigures, type EndpointStatistics, NO_FIGURES } from './statistics/index.ts';

/** Public meaning of -1: the price varies. */
const UNKNOWN_PRICING: PricingView = { prompt: '-1', completion: '-1' };

export function viewModel(model: Model): ModelView {
  const { id, name, endpoints, facts } = model;
  const first = model.router ? undefined : endpoints[0];
  const { tokenizer, ...architecture } = viewArchitecture(model);
  return {
    id,
    canonical_slug: facts?.canonical_slug ?? id,
    name,
    created: facts?.created ?? 0,
    description: '',
    context_length: contextOf(model),
    architecture: { ...architecture, ...(tokenizer !== null && { tokenizer }) },
    pricing: viewPricing(pricingOf(model)),
    top_provider: {
      context_length: first?.contextLength ?? null,
      max_completion_tokens: first?.maxCompletionTokens ?? null,
      is_moderated: false,
    },
    per_request_limits: null,
    default_parameters: null,
    supported_parameters: parametersOf(model),
    supported_voices: null,
    ...(facts?.reasoning && {
      reasoning: {
        mandatory: facts.reasoning.mandatory,
        supported_efforts: facts.reasoning.supported_efforts && [...facts.reasoning.supported_efforts],
      },
    }),
    knowledge_cutoff: facts?.knowledge_cutoff ?? null,
    expiration_date: null,
    hugging_face_id: facts?.hugging_face_id ?? null,
    links: { details: `/api/v1/models/${id}/endpoints` },
  };
}

/** The row of `~author/family-latest`: its current model under the alias name. */
export function viewLatest({ id, family, target }: LatestModel): ModelView {
  return {
    ...viewModel(target),
    id,
    name: `${family} (latest)`,
    links: { details: `/api/v1/models/${id}/endpoints` },
    alias_target: { name: target.name, slug: target.id },
  };
}

export function viewEndpoints(model: Model, statistics: EndpointStatistics | undefined): ModelEndpointsView {
  return {
    data: {
      id: model.id,
      name: model.name,
      created: model.facts?.created ?? 0,
      description: '',
      architecture: viewArchitecture(model),
      // Those of a router model are those of the models that it chooses.
      endpoints: model.router ? [] : model.endpoints.map((endpoint) => viewEndpoint(model, endpoint, statistics)),
    },
  };
}

export function viewEndpoint(
  model: Model,
  endpoint: Endpoint,
  statistics: EndpointStatistics | undefined,
): EndpointView {
  const { provider, pricing } = endpoint;
  const chooses = endpoint.supportedParameters?.includes('tool_choice') ?? false;
  const figures = statistics?.of(endpoint.id) ?? NO_FIGURES;
  const workload = workloadOf(endpoint);
  return {
    name: `${provider.name} | ${model.id}`,
    model_id: model.id,
    model_name: model.name,
    provider_name: provider.name,
    tag: tagOf(endpoint),
    quantization: endpoint.quantization,
    context_length: endpoint.contextLength ?? 0,
    max_completion_tokens: endpoint.maxCompletionTokens,
    max_prompt_tokens: null,
    pricing: viewPricing(pricing),
    supported_parameters: [...(endpoint.supportedParameters ?? [])],
    // A provider that charges for cache reads but not for writes caches automatically.
    supports_implicit_caching: pricing?.inputCacheRead !== undefined && pricing.inputCacheWrite === undefined,
    supports_tool_choice: { auto: chooses, function: chooses, none: chooses, required: chooses },
    supports_voice_cloning: false,
    status: statusOf(figures),
    latency_last_30m: figures.latencyMs,
    throughput_last_30m: figures.throughput,
    ...(figures.requests30m > 0 && {
      perf_last_30m_by_workload: {
        [workload]: {
          latency: figures.latencyMs,
          throughput: figures.throughput,
          request_count: figures.requests30m,
        },
      },
    }),
    uptime_last_5m: figures.uptime5m,
    uptime_last_30m: figures.uptime30m,
    uptime_last_1d: figures.uptime1d,
  };
}

/** URLs and countries are null if unknown, and for providers with a custom base URL. */
export function viewProviders(providers: readonly Provider[]): ProviderListView {
  return {
    data: providers.map(({ id, name, kind, baseUrl }) => {
      const policies = isPublic(kind, baseUrl) ? kind.service?.policies : undefined;
      return {
        name,
        slug: id,
        privacy_policy_url: policies?.privacyPolicyUrl ?? null,
        terms_of_service_url: policies?.termsOfServiceUrl ?? null,
        status_page_url: policies?.statusPageUrl ?? null,
        headquarters: policies?.headquarters ?? null,
        datacenters: null,
      };
    }),
  };
}

/** A kind whose base URL depends on its options is always at its public address. */
function isPublic({ baseUrl: own }: Provider['kind'], baseUrl: string): boolean {
  return typeof own === 'function' || own === baseUrl;
}

/** The largest context of any endpoint. */
export function contextOf({ endpoints }: Model): number | null {
  return endpoints.reduce<number | null>(
    (most, { contextLength }) => (contextLength !== null && contextLength > (most ?? 0) ? contextLength : most),
    null,
  );
}

/** The price of the first endpoint with a known price. That of a router model depends on its choice. */
export function pricingOf({ endpoints, router }: Model): Pricing | null {
  if (router) return null;
  return endpoints.find(({ pricing }) => pricing !== null)?.pricing ?? null;
}

export function parametersOf({ endpoints }: Model): string[] {
  return union(endpoints.map(({ supportedParameters }) => supportedParameters));
}

export function inputModalitiesOf({ endpoints }: Model): string[] {
  return union(endpoints.map(({ inputModalities }) => inputModalities));
}

/** A model with unknown modalities is assumed to output text, as chat models do. */
export function outputModalitiesOf({ endpoints }: Model): string[] {
  return union(endpoints.map(({ outputModalities }) => outputModalities ?? ['text']));
}

function viewArchitecture(model: Model): ModelEndpointsView['data']['architecture'] {
  const input = inputModalitiesOf(model);
  const output = union(model.endpoints.map(({ outputModalities }) => outputModalities));
  return {
    input_modalities: input,
    output_modalities: output,
    modality: input.length === 0 || output.length === 0 ? null : `${input.join('+')}->${output.join('+')}`,
    instruct_type: null,
    tokenizer: model.router ? 'Router' : (model.facts?.tokenizer ?? null),
  };
}

/** `request` and `image` are part of every known price; 0 if not charged. */
function viewPricing(pricing: Pricing | null): PricingView {
  if (pricing === null) return UNKNOWN_PRICING;
  const { overrides = [] } = pricing;
  return {
    request: '0',
    image: '0',
    ...(texts(pricing, PRICE_NAMES) as { prompt: string; completion: string }),
    ...(overrides.length > 0 && {
      overrides: overrides.map(({ minPromptTokens, prices }) => ({
        min_prompt_tokens: minPromptTokens,
        ...texts(prices, OVERRIDE_PRICE_NAMES),
      })),
    }),
  };
}

export function tagOf({ provider, quantization, tier }: Endpoint): string {
  const variant = tier?.name ?? quantization;
  return variant === null ? provider.id : `${provider.id}/${variant}`;
}

/** The public values of `status`, derived from measurements. */
function statusOf({ uptime5m, requests30m, rateLimited30m }: EndpointFigures): number {
  if (uptime5m !== null && uptime5m < 50) return -3;
  if (rateLimited30m > 0 && rateLimited30m * 2 >= requests30m) return -2;
  return uptime5m !== null && uptime5m < 95 ? -1 : 0;
}

const WORKLOADS: Readonly<Record<string, string>> = {
  embeddings: 'embeddings',
  rerank: 'rerank',
  image: 'image_generation',
  video: 'video_generation',
  speech: 'tts',
  transcription: 'stt',
};

function workloadOf({ outputModalities }: Endpoint): string {
  const written = outputModalities ?? ['text'];
  return written.includes('text') ? 'text_generation' : (WORKLOADS[written[0] ?? ''] ?? 'unknown');
}

function texts(prices: Prices, names: Readonly<Record<string, keyof Prices>>): Record<string, string> {
  const entries = Object.entries(names).flatMap(([wire, name]) => {
    const price = prices[name];
    return price === undefined ? [] : [[wire, textFromPrice(price)]];
  });
  return Object.fromEntries(entries);
}

function union(lists: readonly (readonly string[] | null)[]): string[] {
  return [...new Set(lists.flatMap((list) => list ?? []))];
}
