/** The operation of the format, with its reply for the OpenAPI document. */
import { Type } from 'typebox';
import type { ServedOperation } from '../conversation/format.ts';
import { Charged, Count, ENDS_WITH_DONE, open, orNull } from '../conversation/reply-schema.ts';

const ChatUsage = Type.Object(
  {
    prompt_tokens: Type.Integer({ minimum: 0, description: 'All input tokens, cache reads and writes included' }),
    completion_tokens: Type.Integer({ minimum: 0, description: 'All output tokens, reasoning included' }),
    total_tokens: Count,
    prompt_tokens_details: Type.Object({ cached_tokens: Count, cache_write_tokens: Type.Optional(Count) }, open),
    completion_tokens_details: Type.Object({ reasoning_tokens: Count }, open),
    ...Charged,
  },
  { ...open, $id: 'ChatUsage' },
);

const ToolCall = Type.Object(
  {
    id: Type.String(),
    index: Type.Optional(Count),
    type: Type.Literal('function'),
    function: Type.Object({ name: Type.String(), arguments: Type.String({ description: 'JSON text' }) }),
  },
  { ...open, $id: 'ChatReplyToolCall' },
);

const AssistantMessage = Type.Object(
  {
    role: Type.Literal('assistant'),
    content: orNull(Type.String()),
    refusal: Type.Optional(orNull(Type.String())),
    reasoning: Type.Optional(orNull(Type.String())),
    reasoning_details: Type.Optional(Type.Array(Type.Object({ type: Type.String() }, open))),
    tool_calls: Type.Optional(Type.Array(ToolCall)),
    annotations: Type.Optional(Type.Array(Type.Object({ type: Type.String() }, open))),
  },
  { ...open, $id: 'ChatReplyMessage' },
);

const ChatReply = Type.Object(
  {
    id: Type.String({ description: '`gen-...`' }),
    object: Type.Literal('chat.completion'),
    created: Type.Integer({ description: 'Unix seconds' }),
    model: Type.String(),
    provider: Type.String(),
    choices: Type.Array(
      Type.Object(
        {
          index: Count,
          finish_reason: Type.Enum(['stop', 'length', 'tool_calls', 'content_filter', 'error']),
          native_finish_reason: Type.Optional(orNull(Type.String())),
          message: AssistantMessage,
          logprobs: Type.Optional(orNull(Type.Object({}, open))),
        },
        open,
      ),
    ),
    usage: ChatUsage,
  },
  { ...open, $id: 'ChatCompletion' },
);

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
            { role: Type.Optional(Type.Literal('assistant')), content: Type.Optional(orNull(Type.String())) },
            open,
          ),
          finish_reason: Type.Optional(orNull(Type.String())),
        },
        open,
      ),
    ),
    usage: Type.Optional(orNull(Type.Object({}, open))),
    error: Type.Optional(Type.Object({ code: Type.Integer(), message: Type.String() }, open)),
  },
  { ...open, $id: 'ChatCompletionChunk' },
);

export const operation: ServedOperation = {
  id: 'createChatCompletion',
  path: '/chat/completions',
  summary: 'Create a chat completion, streamed or not',
  reply: ChatReply,
  events: { schema: ChatChunk, description: ENDS_WITH_DONE },
};
