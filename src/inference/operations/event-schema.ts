/** Stream events and error statuses of the inference operations, for the OpenAPI document. */
import { Type } from 'typebox';
import { nullable } from '../../http/contract.ts';

/** Budgets, models, upstream refusals, rate limits, and upstreams that fail, time out or are overloaded. */
export const INFERENCE_ERRORS = [402, 404, 422, 429, 502, 504, 529];

const open = { additionalProperties: true } as const;
const DONE = 'The last event is `[DONE]`; lines that begin with a colon keep the connection alive.';

const ChatChunk = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('chat.completion.chunk'),
    created: Type.Integer({ description: 'Unix seconds' }),
    model: Type.String(),
    choices: Type.Array(
      Type.Object(
        {
          index: Type.Integer({ minimum: 0 }),
          delta: Type.Object(
            { role: Type.Optional(Type.Literal('assistant')), content: Type.Optional(nullable(Type.String())) },
            open,
          ),
          finish_reason: Type.Optional(nullable(Type.String())),
        },
        open,
      ),
    ),
    usage: Type.Optional(nullable(Type.Object({}, open))),
    error: Type.Optional(Type.Object({ code: Type.Integer(), message: Type.String() }, open)),
  },
  { ...open, $id: 'ChatCompletionChunk' },
);

const MessageEvent = Type.Object(
  {
    type: Type.Enum([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
      'ping',
      'error',
    ]),
  },
  { ...open, $id: 'MessageEvent' },
);

const ResponseEvent = Type.Object(
  { type: Type.String({ description: '`response.created`, `response.output_text.delta`, ...' }) },
  { ...open, $id: 'ResponseEvent' },
);

const CompletionChunk = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('text_completion'),
    created: Type.Integer({ description: 'Unix seconds' }),
    model: Type.String(),
    choices: Type.Array(Type.Object({ index: Type.Integer({ minimum: 0 }), text: Type.String() }, open)),
  },
  { ...open, $id: 'CompletionChunk' },
);

const ImageEvent = Type.Object({ type: Type.String() }, { ...open, $id: 'ImageEvent' });

export const ChatEvents = { schema: ChatChunk, description: DONE };
export const MessagesEvents = { schema: MessageEvent, description: 'The last event has the type `message_stop`.' };
export const ResponsesEvents = { schema: ResponseEvent, description: DONE };
export const CompletionEvents = { schema: CompletionChunk, description: DONE };
export const ImageEvents = { schema: ImageEvent, description: DONE };

export const MessagesErrorSchema = Type.Object(
  {
    type: Type.Literal('error'),
    error: Type.Object({ type: Type.String(), message: Type.String() }, open),
    request_id: nullable(Type.String({ description: 'The id of the generation' })),
  },
  { ...open, $id: 'MessagesError' },
);
