/** Wire schemas of the catalog. */
import { type Static, Type } from 'typebox';
import { nullable } from '../http/contract.ts';

const price = (description: string) => Type.Optional(Type.String({ description }));

/** Prices are decimal strings in USD. */
const PricingSchema = Type.Object(
  {
    prompt: Type.String({ description: 'Per token; "-1" if unknown' }),
    completion: Type.String({ description: 'Per token; "-1" if unknown' }),
    request: price('Per request'),
    image: price('Per input image'),
    image_token: price('Per input image token'),
    image_output: price('Per output image token'),
    audio: price('Per input audio token'),
    audio_output: price('Per output audio token'),
    input_cache_read: price('Per token read from a cache'),
    input_cache_write: price('Per token written to a cache for 5 minutes'),
    input_cache_write_1h: price('Per token written to a cache for an hour'),
    internal_reasoning: price('Per reasoning token, if priced separately'),
    web_search: price('Per search'),
    input_character: price('Per character of a text to speak'),
    input_second: price('Per started second of audio to transcribe'),
    output_second: price('Per started second of generated audio or video'),
    overrides: Type.Optional(
      Type.Array(
        Type.Object({
          min_prompt_tokens: Type.Integer({ description: 'Applies to prompts with more tokens than this' }),
          prompt: price('Per token'),
          completion: price('Per token'),
          audio: price('Per input audio token'),
          input_cache_read: price('Per token read from a cache'),
          input_cache_write: price('Per token written to a cache for 5 minutes'),
          input_cache_write_1h: price('Per token written to a cache for an hour'),
        }),
      ),
    ),
  },
  { $id: 'Pricing' },
);

const ArchitectureSchema = Type.Object(
  {
    input_modalities: Type.Array(Type.String(), { description: 'Empty if unknown' }),
    output_modalities: Type.Array(Type.String(), { description: 'Empty if unknown' }),
    modality: nullable(Type.String({ description: 'e.g. `text+image->text`; null if unknown' })),
    instruct_type: Type.Null(),
    tokenizer: nullable(Type.String()),
  },
  { $id: 'Architecture' },
);

const ReasoningSchema = Type.Object({
  mandatory: Type.Boolean({ description: 'Reasoning cannot be disabled' }),
  supported_efforts: nullable(Type.Array(Type.String())),
});

export const ModelSchema = Type.Object(
  {
    id: Type.String(),
    canonical_slug: Type.String(),
    name: Type.String(),
    created: Type.Integer({ description: 'Unix seconds; 0 if unknown' }),
    description: Type.String({ description: 'Always empty' }),
    context_length: nullable(Type.Integer()),
    architecture: Type.Object({
      ...Type.Omit(ArchitectureSchema, ['tokenizer']).properties,
      tokenizer: Type.Optional(Type.String()),
    }),
    pricing: PricingSchema,
    top_provider: Type.Object({
      context_length: nullable(Type.Integer()),
      max_completion_tokens: nullable(Type.Integer()),
      is_moderated: Type.Boolean(),
    }),
    per_request_limits: Type.Null(),
    default_parameters: Type.Null(),
    supported_parameters: Type.Array(Type.String(), { description: 'Empty if unknown' }),
    supported_voices: Type.Null(),
    reasoning: Type.Optional(ReasoningSchema),
    knowledge_cutoff: nullable(Type.String({ description: 'YYYY-MM or YYYY-MM-DD' })),
    expiration_date: Type.Null(),
    hugging_face_id: nullable(Type.String()),
    links: Type.Object({ details: Type.String() }),
    alias_target: Type.Optional(Type.Object({ name: Type.String(), slug: Type.String() })),
  },
  { $id: 'Model' },
);

export const ModelListSchema = Type.Object(
  {
    data: Type.Array(ModelSchema),
    links: Type.Object({ next: nullable(Type.String()) }),
    total_count: Type.Integer({ description: 'Number of models on all pages' }),
  },
  { $id: 'ModelList' },
);

export const ModelResponseSchema = Type.Object({ data: ModelSchema }, { $id: 'ModelEnvelope' });

export const ModelsCountSchema = Type.Object({ data: Type.Object({ count: Type.Integer() }) }, { $id: 'ModelCount' });

const PercentilesSchema = nullable(
  Type.Object({ p50: Type.Number(), p75: Type.Number(), p90: Type.Number(), p99: Type.Number() }),
);
const WorkloadSchema = Type.Object(
  {
    latency: PercentilesSchema,
    throughput: PercentilesSchema,
    request_count: nullable(Type.Integer()),
  },
  { $id: 'WorkloadFigures' },
);
const PercentSchema = nullable(Type.Number({ description: 'Percent; null if there were no calls' }));

const EndpointSchema = Type.Object(
  {
    name: Type.String(),
    model_id: Type.String(),
    model_name: Type.String(),
    provider_name: Type.String(),
    tag: Type.String({ description: 'Provider slug, with a variant if any' }),
    quantization: nullable(Type.String()),
    context_length: Type.Integer({ description: '0 if unknown' }),
    max_completion_tokens: nullable(Type.Integer()),
    max_prompt_tokens: Type.Null(),
    pricing: PricingSchema,
    supported_parameters: Type.Array(Type.String(), { description: 'Empty if unknown' }),
    supports_implicit_caching: Type.Boolean(),
    supports_tool_choice: Type.Object({
      auto: Type.Boolean(),
      function: Type.Boolean(),
      none: Type.Boolean(),
      required: Type.Boolean(),
    }),
    supports_voice_cloning: Type.Boolean(),
    status: Type.Integer({ description: '0: works; -1: some calls fail; -2: often rate limited; -3: most calls fail' }),
    latency_last_30m: PercentilesSchema,
    throughput_last_30m: PercentilesSchema,
    perf_last_30m_by_workload: Type.Optional(Type.Record(Type.String(), WorkloadSchema)),
    uptime_last_5m: PercentSchema,
    uptime_last_30m: PercentSchema,
    uptime_last_1d: PercentSchema,
  },
  { $id: 'Endpoint' },
);

export const ModelEndpointsSchema = Type.Object(
  {
    data: Type.Object({
      id: Type.String(),
      name: Type.String(),
      created: Type.Integer({ description: 'Unix seconds; 0 if unknown' }),
      description: Type.String(),
      architecture: ArchitectureSchema,
      endpoints: Type.Array(EndpointSchema),
    }),
  },
  { $id: 'ModelEndpoints' },
);

export const EndpointListSchema = Type.Object({ data: Type.Array(EndpointSchema) }, { $id: 'EndpointList' });

const Url = nullable(Type.String());

export const ProviderListSchema = Type.Object(
  {
    data: Type.Array(
      Type.Object({
        name: Type.String(),
        slug: Type.String(),
        privacy_policy_url: Url,
        terms_of_service_url: Url,
        status_page_url: Url,
        headquarters: nullable(Type.String({ description: 'ISO 3166-1 alpha-2' })),
        datacenters: nullable(Type.Array(Type.String({ description: 'ISO 3166-1 alpha-2' }))),
      }),
    ),
  },
  { $id: 'ProviderList' },
);

export const ModelParamsSchema = Type.Object({ author: Type.String(), slug: Type.String() });

export type PricingView = Static<typeof PricingSchema>;
export type ModelView = Static<typeof ModelSchema>;
export type ModelListView = Static<typeof ModelListSchema>;
export type ModelEndpointsView = Static<typeof ModelEndpointsSchema>;
export type EndpointView = Static<typeof EndpointSchema>;
export type ProviderListView = Static<typeof ProviderListSchema>;
