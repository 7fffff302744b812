/**
 * Reply schemas of the inference operations, for the OpenAPI document. They allow additional members, because an
 * upstream's other members pass through. Replies are not validated at run time.
 */
import { Type } from 'typebox';
import { nullable } from '../../http/contract.ts';

const Count = Type.Integer({ minimum: 0 });
const open = { additionalProperties: true } as const;

const CostDetails = Type.Object(
  {
    upstream_inference_cost: nullable(Type.Number()),
    upstream_inference_prompt_cost: Type.Number(),
    upstream_inference_completions_cost: Type.Number(),
  },
  { $id: 'CostDetails' },
);

const Charged = {
  cost: Type.Optional(Type.Number({ description: 'USD charged; absent when the model has no price' })),
  is_byok: Type.Boolean(),
  cost_details: Type.Optional(CostDetails),
};

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
    content: nullable(Type.String()),
    refusal: Type.Optional(nullable(Type.String())),
    reasoning: Type.Optional(nullable(Type.String())),
    reasoning_details: Type.Optional(Type.Array(Type.Object({ type: Type.String() }, open))),
    tool_calls: Type.Optional(Type.Array(ToolCall)),
    annotations: Type.Optional(Type.Array(Type.Object({ type: Type.String() }, open))),
  },
  { ...open, $id: 'ChatReplyMessage' },
);

export const ChatReply = Type.Object(
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
          native_finish_reason: Type.Optional(nullable(Type.String())),
          message: AssistantMessage,
          logprobs: Type.Optional(nullable(Type.Object({}, open))),
        },
        open,
      ),
    ),
    usage: ChatUsage,
  },
  { ...open, $id: 'ChatCompletion' },
);

export const MessagesReply = Type.Object(
  {
    id: Type.String({ description: '`gen-...`' }),
    type: Type.Literal('message'),
    role: Type.Literal('assistant'),
    model: Type.String(),
    provider: Type.Optional(Type.String()),
    content: Type.Array(Type.Object({ type: Type.String() }, open)),
    stop_reason: nullable(Type.String()),
    stop_sequence: nullable(Type.String()),
    usage: Type.Object({ input_tokens: Count, output_tokens: Count, ...Charged }, open),
  },
  { ...open, $id: 'Message' },
);

export const ResponsesReply = Type.Object(
  {
    id: Type.String({ description: '`resp_...`; the generation id is `gen-...` with the same suffix' }),
    object: Type.Literal('response'),
    created_at: Type.Integer({ description: 'Unix seconds' }),
    status: Type.Enum(['completed', 'incomplete', 'failed']),
    model: Type.String(),
    output: Type.Array(Type.Object({ type: Type.String() }, open)),
    incomplete_details: nullable(Type.Object({ reason: Type.Optional(Type.String()) }, open)),
    error: nullable(Type.Object({ code: Type.String(), message: Type.String() }, open)),
    usage: nullable(
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
