/** Wire schemas of batches. */
import { Type } from 'typebox';
import { closed, nullable } from '../http/contract.ts';
import { BATCH_ENDPOINTS, BATCH_STATES } from './batch.ts';
import { CreateFileBatchBody, OpenaiBatch } from './openai/schema.ts';
import { UPSTREAM_DATA } from './store.ts';

const count = Type.Integer({ minimum: 0 });
const Endpoint = Type.Enum([...BATCH_ENDPOINTS]);
const Status = Type.Enum([...BATCH_STATES]);

const CreateBatchBody = Type.Object(
  {
    endpoint: Endpoint,
    model: Type.String({ minLength: 1, maxLength: 256, description: 'Of every request' }),
    requests: Type.Array(
      Type.Object(
        {
          custom_id: Type.String({ minLength: 1, maxLength: 256, description: 'Unique within the batch' }),
          body: Type.Object({}, { description: 'A request of the endpoint; `model` may be left out' }),
        },
        closed,
      ),
      { minItems: 1 },
    ),
    completion_window: Type.Optional(Type.Literal('24h')),
    callback_url: Type.Optional(
      nullable(
        Type.String({
          maxLength: 2048,
          description: 'An https URL that gets a signed event when the batch ends (docs/guides/batches.md)',
        }),
      ),
    ),
    provider: Type.Optional(
      nullable(
        Type.Object(
          {
            only: Type.Optional(nullable(Type.Array(Type.String()))),
            allow_fallbacks: Type.Optional(nullable(Type.Boolean())),
          },
          closed,
        ),
      ),
    ),
  },
  { ...closed, $id: 'CreateBatchRequest' },
);

export const CreateBatch = Type.Union([CreateBatchBody, CreateFileBatchBody]);

const Creation = Type.Object({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count });

const Usage = Type.Object(
  {
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    prompt_tokens_details: Type.Object({
      cached_tokens: count,
      cache_write_tokens: count,
      audio_tokens: count,
      file_tokens: count,
      video_tokens: count,
    }),
    completion_tokens_details: Type.Object({ reasoning_tokens: count, audio_tokens: count, image_tokens: count }),
    cache_creation: Creation,
    server_tool_use: Type.Object({
      web_search_requests: count,
      tool_calls_requested: count,
      tool_calls_executed: count,
    }),
    cost: Type.Number({ description: 'USD, charged in credits' }),
    cost_details: Type.Object({
      upstream_inference_cost: nullable(Type.Number({ description: 'USD paid to providers with BYOK credentials' })),
      upstream_inference_prompt_cost: Type.Number(),
      upstream_inference_completions_cost: Type.Number(),
    }),
    is_byok: Type.Boolean({ description: 'True if any request used a BYOK credential' }),
    service_tier: nullable(Type.String({ description: 'Of all requests; null if they differ or none was reported' })),
    speed: Type.Optional(Type.Enum(['standard', 'fast'], { description: 'Batches of `/v1/messages`' })),
    iterations: Type.Optional(
      Type.Array(
        Type.Object({
          type: Type.Literal('message'),
          input_tokens: count,
          output_tokens: count,
          cache_read_input_tokens: count,
          cache_creation_input_tokens: count,
          cache_creation: Creation,
        }),
        { description: 'Batches of `/v1/messages`: one entry, the sum over the requests' },
      ),
    ),
  },
  { $id: 'BatchUsage' },
);

export const BatchResult = Type.Object(
  {
    id: Type.String(),
    custom_id: Type.String(),
    response: nullable(
      Type.Object({
        status_code: Type.Integer(),
        request_id: nullable(Type.String({ description: 'The id of the generation, for `GET /generation`' })),
        body: Type.Object({}, { description: 'The reply of the endpoint' }),
      }),
    ),
    error: nullable(
      Type.Object({
        type: Type.String(),
        message: Type.String(),
        param: nullable(Type.String()),
        error_type: Type.String(),
      }),
    ),
  },
  { $id: 'BatchResult' },
);

export const Batch = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('batch'),
    endpoint: Endpoint,
    model: nullable(Type.String({ description: 'Null if each request names its own model' })),
    completion_window: Type.Literal('24h'),
    status: Status,
    created_at: Type.Integer({ description: 'Unix seconds' }),
    expires_at: Type.Integer({ description: 'Unix seconds; requests that have not begun by then do not run' }),
    finalized_at: nullable(Type.Integer({ description: 'Unix seconds' })),
    request_counts: Type.Object({ total: count, completed: count, failed: count }),
    usage: nullable(Usage),
    error: nullable(Type.Object({ message: Type.String() })),
    results: nullable(
      Type.Array(BatchResult, {
        description: 'In the order of the requests. Null in lists, and before a final status',
      }),
    ),
  },
  { $id: 'Batch' },
);

/** The second for batches with an input file, and for OpenAI's clients. */
export const ShownBatch = Type.Union([Batch, OpenaiBatch]);

export const BatchPage = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(ShownBatch),
    first_id: nullable(Type.String()),
    last_id: nullable(Type.String()),
    has_more: Type.Boolean(),
  },
  { $id: 'BatchPage' },
);

const DEFAULT_PAGE = 20;

const time = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }));

export const ListBatchesQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: DEFAULT_PAGE })),
    after: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: '`last_id` of the page before' })),
    status: Type.Optional(Type.Array(Status, { description: 'Repeat it for several' })),
    created_after: time('A time, a date or Unix seconds, exclusive'),
    created_before: time('A time, a date or Unix seconds, exclusive'),
  },
  closed,
);

export const BatchParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 64 }) });

export const GetBatchQuery = Type.Object(
  { results: Type.Optional(Type.Boolean({ default: true, description: 'False leaves them out, for polling' })) },
  closed,
);

export const ResultsQuery = Type.Object(
  {
    after: Type.Optional(
      Type.String({ minLength: 1, maxLength: 64, description: '`id` of the last result that the client has' }),
    ),
  },
  closed,
);

export const BatchDeleted = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('batch'),
    deletion: Type.Object(
      {
        upstream: Type.Optional(
          Type.Object(
            {
              provider: Type.String({ description: 'Of several, the one with the worst status' }),
              status: Type.Enum([...UPSTREAM_DATA], {
                description:
                  '`deleted`: uploads and results were removed after reading; `unsupported`: the provider may have kept some; `not_applicable`: it never had any',
              }),
            },
            { description: 'If the batch interface of a provider was used' },
          ),
        ),
      },
      {
        additionalProperties: Type.Literal('deleted'),
        description: 'A member named like this service (`svc`), and `upstream`',
      },
    ),
  },
  { $id: 'BatchDeleted' },
);
