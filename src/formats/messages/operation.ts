/** The operation of the format, with its reply for the OpenAPI document. */
import { Type } from 'typebox';
import type { ServedOperation } from '../conversation/format.ts';
import { Charged, Count, open, orNull } from '../conversation/reply-schema.ts';

const MessagesReply = Type.Object(
  {
    id: Type.String({ description: '`gen-...`' }),
    type: Type.Literal('message'),
    role: Type.Literal('assistant'),
    model: Type.String(),
    provider: Type.Optional(Type.String()),
    content: Type.Array(Type.Object({ type: Type.String() }, open)),
    stop_reason: orNull(Type.String()),
    stop_sequence: orNull(Type.String()),
    usage: Type.Object({ input_tokens: Count, output_tokens: Count, ...Charged }, open),
  },
  { ...open, $id: 'Message' },
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

const MessagesErrorSchema = Type.Object(
  {
    type: Type.Literal('error'),
    error: Type.Object({ type: Type.String(), message: Type.String() }, open),
    request_id: orNull(Type.String({ description: 'The id of the generation' })),
  },
  { ...open, $id: 'MessagesError' },
);

export const operation: ServedOperation = {
  id: 'createMessage',
  path: '/messages',
  summary: 'Create a message (Anthropic Messages format), streamed or not',
  reply: MessagesReply,
  events: { schema: MessageEvent, description: 'The last event has the type `message_stop`.' },
  errorSchema: MessagesErrorSchema,
  // Anthropic's SDKs read the request id from this header.
  requestIdHeader: 'request-id',
};
