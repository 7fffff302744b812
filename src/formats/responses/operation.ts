/** The operation of the format, with its reply for the OpenAPI document. */
import { Type } from 'typebox';
import type { ServedOperation } from '../conversation/format.ts';
import { Charged, Count, ENDS_WITH_DONE, open, orNull } from '../conversation/reply-schema.ts';

const ResponsesReply = Type.Object(
  {
    id: Type.String({ description: '`resp_...`; the generation id is `gen-...` with the same suffix' }),
    object: Type.Literal('response'),
    created_at: Type.Integer({ description: 'Unix seconds' }),
    status: Type.Enum(['completed', 'incomplete', 'failed']),
    model: Type.String(),
    output: Type.Array(Type.Object({ type: Type.String() }, open)),
    incomplete_details: orNull(Type.Object({ reason: Type.Optional(Type.String()) }, open)),
    error: orNull(Type.Object({ code: Type.String(), message: Type.String() }, open)),
    usage: orNull(
      Type.Object(
        {
          input_tokens: Type.Integer({ minimum: 0, description: 'All input tokens, cache reads and writes included' }),
          output_tokens: Type.Integer({ minimum: 0, description: 'All output tokens, reasoning included' }),
          total_tokens: Count,
          cost: Charged.cost,
          is_byok: Type.Optional(Type.Boolean()),
        },
        open,
      ),
    ),
  },
  { ...open, $id: 'Response' },
);

const ResponseEvent = Type.Object(
  { type: Type.String({ description: '`response.created`, `response.output_text.delta`, ...' }) },
  { ...open, $id: 'ResponseEvent' },
);

export const operation: ServedOperation = {
  id: 'createResponse',
  path: '/responses',
  summary: 'Create a response (OpenAI Responses format), streamed or not; stored if `store` is true',
  reply: ResponsesReply,
  events: { schema: ResponseEvent, description: ENDS_WITH_DONE },
};
