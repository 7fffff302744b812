/** Wire schemas of `GET /generations`. */
import { type Static, Type } from 'typebox';
import { closed, nullable } from '../../http/contract.ts';

const Text = Type.String({ minLength: 1, maxLength: 512 });
const Time = (description: string) => Type.Optional(Type.String({ description }));

export const GenerationListQuerySchema = Type.Object(
  {
    start: Time('ISO 8601 with seconds and time zone'),
    end: Time('Not included'),
    id: Type.Optional(Text),
    model: Type.Optional(Text),
    provider: Type.Optional(Text),
    api_key_id: Type.Optional(Type.String({ ...Text, description: 'The hash or the number of a key' })),
    workspace_id: Type.Optional(Type.String({ format: 'uuid' })),
    api_type: Type.Optional(Text),
    error_type: Type.Optional(Text),
    session_id: Type.Optional(Text),
    external_user: Type.Optional(Text),
    outcome: Type.Optional(
      Type.Union(
        [Type.Literal('succeeded'), Type.Literal('failed'), Type.Literal('cancelled'), Type.Literal('guarded')],
        { description: '`guarded`: a filter of a guardrail matched' },
      ),
    ),
    cursor: Type.Optional(
      Type.String({ pattern: '^gen-[0-9a-z-]{1,96}$', description: '`next_cursor` of the page before' }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
  },
  closed,
);

const GenerationSummarySchema = Type.Object(
  {
    id: Type.String(),
    created_at: Type.String(),
    model: Type.String(),
    provider_name: nullable(Type.String()),
    api_type: Type.String(),
    streamed: Type.Boolean(),
    status: nullable(Type.Integer({ description: 'HTTP status sent to the client; null if none was sent' })),
    error: nullable(Type.Object({ type: Type.String(), message: Type.String() })),
    cancelled: Type.Boolean({ description: 'The client disconnected before the answer was complete' }),
    estimated: Type.Boolean({ description: 'The upstream reported no usage: tokens and cost are estimated' }),
    finish_reason: nullable(Type.String()),
    api_key: nullable(Type.Object({ hash: Type.String(), name: Type.String(), label: Type.String() })),
    workspace_id: Type.String(),
    session_id: nullable(Type.String()),
    external_user: nullable(Type.String()),
    is_byok: Type.Boolean(),
    attempts: Type.Integer({ description: 'Upstream attempts' }),
    guardrail_marks: Type.Integer({ description: 'Guardrail filters that matched' }),
    tokens_prompt: nullable(Type.Integer()),
    tokens_completion: nullable(Type.Integer()),
    total_cost: Type.Number({ description: 'USD' }),
    latency: nullable(Type.Number({ description: 'Milliseconds to the first visible content' })),
    generation_time: nullable(Type.Number({ description: 'Milliseconds' })),
  },
  { $id: 'GenerationSummary' },
);

export const GenerationListSchema = Type.Object(
  {
    data: Type.Array(GenerationSummarySchema),
    next_cursor: nullable(Type.String({ description: 'null on the last page' })),
  },
  { $id: 'GenerationList' },
);

export type GenerationListQuery = Static<typeof GenerationListQuerySchema>;
export type GenerationSummary = Static<typeof GenerationSummarySchema>;
