/** The catalog as the wire shows it. Pure; nothing that is not known is made up: see `schema.ts` for what stands instead. */
import { OVERRIDE_PRICE_NAMES, PRICE_NAMES, type Prices, type Pricing } from '../base/config.ts';
import { textFromPrice } from '../base/money.ts';
import type { Endpoint, Model } from './catalog.ts';
import type {
  EndpointView,
  ListModelsQuery,
  ModelEndpointsView,
  ModelListView,
  ModelView,
  PricingView,
} from './schema.ts';

const PAGE_SIZE = 500;
/** Public meaning of the value: the price depends. */
const UNKNOWN_PRICING: PricingView = { prompt: '-1', completion: '-1' };

/** One page of the models that the query asks for (wire/models.md, GET /models). `path` is the operation's own. */
export function listModels(models: readonly Model[], query: ListModelsQuery, path: string): ModelListView {
  const { offset = 0, limit = PAGE_SIZE } = query;
  const found = models.filter((model) => matches(model, query));
  const page = found.slice(offset, offset + limit);
  const more = offset + page.length < found.length && page.length > 0;
  return {
    data: page.map(viewModel),
    links: { next: more ? nextPage(path, query, offset + limit) : null },
    total_count: found.length,
  };
}

export function viewEndpoints(model: Model): ModelEndpointsView {
  return {
    data: {
      id: model.id,
      name: model.name,
      created: 0,
      description: '',
      architecture: { ...architecture(model.endpoints), instruct_type: null, tokenizer: null },
      endpoints: model.endpoints.map((endpoint) => viewEndpoint(model, endpoint)),
    },
  };
}

function viewModel({ id, name, endpoints }: Model): ModelView {
  const first = endpoints[0]!;
  return {
    id,
    canonical_slug: id,
    name,
    created: 0,
    context_length: largest(endpoints.map(({ contextLength }) => contextLength)),
    architecture: architecture(endpoints),
    pricing: viewPricing(endpoints.find(({ pricing }) => pricing !== null)?.pricing ?? null),
    top_provider: {
      context_length: first.contextLength,
      max_completion_tokens: first.maxCompletionTokens,
      is_moderated: false,
    },
    per_request_limits: null,
    default_parameters: null,
    supported_parameters: union(endpoints.map(({ supportedParameters }) => supportedParameters)),
    supported_voices: null,
    links: { details: `/api/v1/models/${id}/endpoints` },
  };
}

function viewEndpoint(model: Model, endpoint: Endpoint): EndpointView {
  const { provider, quantization } = endpoint;
  const chooses = endpoint.supportedParameters?.includes('tool_choice') ?? false;
  return {
    name: `${provider.name} | ${model.id}`,
    model_id: model.id,
    model_name: model.name,
    provider_name: provider.name,
    tag: quantization === null ? provider.id : `${provider.id}/${quantization}`,
    quantization,
    context_length: endpoint.contextLength ?? 0,
    max_completion_tokens: endpoint.maxCompletionTokens,
    max_prompt_tokens: null,
    pricing: viewPricing(endpoint.pricing),
    supported_parameters: [...(endpoint.supportedParameters ?? [])],
    supports_implicit_caching: false,
    supports_tool_choice: { auto: chooses, function: chooses, none: chooses, required: chooses },
    latency_last_30m: null,
    throughput_last_30m: null,
    uptime_last_5m: null,
    uptime_last_30m: null,
    uptime_last_1d: null,
  };
}

/** `request` and `image` stand in every known price: what is not charged costs 0. */
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

function texts(prices: Prices, names: Readonly<Record<string, keyof Prices>>): Record<string, string> {
  const entries = Object.entries(names).flatMap(([wire, name]) => {
    const price = prices[name];
    return price === undefined ? [] : [[wire, textFromPrice(price)]];
  });
  return Object.fromEntries(entries);
}

function architecture(endpoints: readonly Endpoint[]) {
  const input = union(endpoints.map(({ inputModalities }) => inputModalities));
  const output = union(endpoints.map(({ outputModalities }) => outputModalities));
  return {
    input_modalities: input,
    output_modalities: output,
    modality: input.length === 0 || output.length === 0 ? null : `${input.join('+')}->${output.join('+')}`,
  };
}

/** A model whose modalities are not known counts as one that writes text, the rule of chat models. */
function matches({ endpoints }: Model, query: ListModelsQuery): boolean {
  const wanted = words(query.output_modalities ?? 'text');
  const written = union(endpoints.map(({ outputModalities }) => outputModalities ?? ['text']));
  if (!wanted.includes('all') && !wanted.some((modality) => written.includes(modality))) return false;
  const parameters = union(endpoints.map(({ supportedParameters }) => supportedParameters));
  return words(query.supported_parameters ?? '').every((name) => parameters.includes(name));
}

function nextPage(path: string, query: ListModelsQuery, offset: number): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, offset })) parameters.set(name, String(value));
  return `${path}?${parameters}`;
}

function words(list: string): string[] {
  return list.split(',').filter((word) => word !== '');
}

function union(lists: readonly (readonly string[] | null)[]): string[] {
  return [...new Set(lists.flatMap((list) => list ?? []))];
}

function largest(numbers: readonly (number | null)[]): number | null {
  return numbers.reduce((most, number) => (number !== null && (most === null || number > most) ? number : most), null);
}
