/** Wire schemas of the catalog (wire/models.md; spec, "Model and its endpoints"). */
import { type Static, Type } from 'typebox';

const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const price = (description: string) => Type.Optional(Type.String({ description }));

/** Prices are decimal texts in USD. */
export const PricingSchema = Type.Object({
  prompt: Type.String({ description: 'Per token; "-1" when the price is not known' }),
  completion: Type.String({ description: 'Per token; "-1" when the price is not known' }),
  request: price('Per request'),
  image: price('Per image of the prompt'),
  image_token: price('Per token of an image of the prompt'),
  image_output: price('Per token of an image of the answer'),
  audio: price('Per token of sound in the prompt'),
  audio_output: price('Per token of sound in the answer'),
  input_cache_read: price('Per token read from a cache'),
  input_cache_write: price('Per token written to a cache for 5 minutes'),
  input_cache_write_1h: price('Per token written to a cache for an hour'),
  internal_reasoning: price('Per token of thinking, where it has a price of its own'),
  web_search: price('Per search'),
  overrides: Type.Optional(
    Type.Array(
      Type.Object({
        min_prompt_tokens: Type.Integer({ description: 'Holds for prompts of more tokens than this' }),
        prompt: price('Per token'),
        completion: price('Per token'),
        audio: price('Per token of sound in the prompt'),
        input_cache_read: price('Per token read from a cache'),
        input_cache_write: price('Per token written to a cache for 5 minutes'),
        input_cache_write_1h: price('Per token written to a cache for an hour'),
      }),
    ),
  ),
});

const ArchitectureSchema = Type.Object({
  input_modalities: Type.Array(Type.String()),
  output_modalities: Type.Array(Type.String()),
  modality: nullable(Type.String({ description: 'e.g. `text+image->text`; null when it is not known' })),
  instruct_type: Type.Null(),
  tokenizer: Type.Null(),
});

export const ModelSchema = Type.Object({
  id: Type.String(),
  canonical_slug: Type.String(),
  name: Type.String(),
  created: Type.Integer({ description: 'Unix seconds; 0 when it is not known' }),
  context_length: nullable(Type.Integer()),
  architecture: Type.Omit(ArchitectureSchema, ['instruct_type', 'tokenizer']),
  pricing: PricingSchema,
  top_provider: Type.Object({
    context_length: nullable(Type.Integer()),
    max_completion_tokens: nullable(Type.Integer()),
    is_moderated: Type.Boolean(),
  }),
  per_request_limits: Type.Null(),
  default_parameters: Type.Null(),
  supported_parameters: Type.Array(Type.String(), { description: 'Empty when they are not known' }),
  supported_voices: Type.Null(),
  links: Type.Object({ details: Type.String() }),
});

export const ModelListSchema = Type.Object({
  data: Type.Array(ModelSchema),
  links: Type.Object({ next: nullable(Type.String()) }),
  total_count: Type.Integer({ description: 'On all pages' }),
});

const FigureSchema = Type.Null({ description: 'Not measured' });

export const EndpointSchema = Type.Object({
  name: Type.String(),
  model_id: Type.String(),
  model_name: Type.String(),
  provider_name: Type.String(),
  tag: Type.String({ description: "The provider's slug, with its variant" }),
  quantization: nullable(Type.String()),
  context_length: Type.Integer({ description: '0 when it is not known' }),
  max_completion_tokens: nullable(Type.Integer()),
  max_prompt_tokens: Type.Null(),
  pricing: PricingSchema,
  supported_parameters: Type.Array(Type.String(), { description: 'Empty when they are not known' }),
  supports_implicit_caching: Type.Boolean(),
  supports_tool_choice: Type.Object({
    auto: Type.Boolean(),
    function: Type.Boolean(),
    none: Type.Boolean(),
    required: Type.Boolean(),
  }),
  latency_last_30m: FigureSchema,
  throughput_last_30m: FigureSchema,
  uptime_last_5m: FigureSchema,
  uptime_last_30m: FigureSchema,
  uptime_last_1d: FigureSchema,
});

export const ModelEndpointsSchema = Type.Object({
  data: Type.Object({
    id: Type.String(),
    name: Type.String(),
    created: Type.Integer({ description: 'Unix seconds; 0 when it is not known' }),
    description: Type.String(),
    architecture: ArchitectureSchema,
    endpoints: Type.Array(EndpointSchema),
  }),
});

export const ListModelsQuerySchema = Type.Object(
  {
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Default 500' })),
    output_modalities: Type.Optional(
      Type.String({ description: 'Comma-separated; models that write one of them, or `all`. Default `text`' }),
    ),
    supported_parameters: Type.Optional(Type.String({ description: 'Comma-separated; models that take all of them' })),
  },
  { additionalProperties: false },
);

export const ModelParamsSchema = Type.Object({ author: Type.String(), slug: Type.String() });

export type PricingView = Static<typeof PricingSchema>;
export type ModelView = Static<typeof ModelSchema>;
export type ModelListView = Static<typeof ModelListSchema>;
export type ModelEndpointsView = Static<typeof ModelEndpointsSchema>;
export type EndpointView = Static<typeof EndpointSchema>;
export type ListModelsQuery = Static<typeof ListModelsQuerySchema>;
