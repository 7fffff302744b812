/** Wire schemas of the chat with an intern. */
import { type Static, Type } from 'typebox';
import { closed, nullable } from '../../http/contract.ts';

const LONGEST_SESSION_ID = 256;
const LONGEST_MODEL = 256;

const SessionId = Type.String({ minLength: 1, maxLength: LONGEST_SESSION_ID });

const Message = Type.Object(
  {
    role: Type.Enum(['user', 'tool', 'assistant', 'system', 'developer']),
    content: Type.Optional(Type.Unknown({ description: 'A text, or a list of {"type": "text", "text": ...}' })),
    tool_call_id: Type.Optional(Type.Unknown({ description: 'Of a `tool` message: the tool call that it answers' })),
  },
  { $id: 'InternChatMessage' },
);

/** Further members, such as `temperature` and `tools`, are ignored. */
export const ChatBodySchema = Type.Object(
  {
    messages: Type.Array(Message, {
      minItems: 1,
      description:
        'Only the last one is read. `user` starts a run; `tool` answers a question of a run and needs `session_id`',
    }),
    stream: Type.Optional(Type.Unknown({ description: 'Must be true' })),
    session_id: Type.Optional(SessionId),
    approval_mode: Type.Optional(
      Type.Enum(['manual', 'self-drive'], {
        default: 'self-drive',
        description: '`manual`: asks before it uses a tool that needs consent. For this prompt only',
      }),
    ),
    model: Type.Optional(
      Type.String({ minLength: 1, maxLength: LONGEST_MODEL, description: 'Ignored: an intern has its own model' }),
    ),
  },
  { $id: 'InternChatCompletionRequest' },
);

export const InvokeBodySchema = Type.Object(
  { input: Type.String({ description: 'The prompt, up to 32,000 characters' }), session_id: Type.Optional(SessionId) },
  { ...closed, $id: 'InternInvokeRequest' },
);

const ToolCall = Type.Object({
  id: Type.String({ description: 'The answer repeats it as `tool_call_id`' }),
  index: Type.Integer(),
  type: Type.Literal('function'),
  function: Type.Object({
    name: Type.String({ description: '`svc.provide_input`' }),
    arguments: Type.String({
      description: 'JSON: a `permission` with its `options`, or an `elicitation` with `fields`',
    }),
  }),
});

const ChunkError = Type.Object({
  code: Type.Integer(),
  message: Type.String(),
  metadata: Type.Object({ reason: Type.String(), retryable: Type.Boolean() }),
});

export const ChunkSchema = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('chat.completion.chunk'),
    created: Type.Integer(),
    model: Type.String({ description: 'As the intern reports it, or `svc/intern`' }),
    choices: Type.Array(
      Type.Object({
        index: Type.Integer(),
        delta: Type.Object({
          role: Type.Optional(Type.Literal('assistant')),
          content: Type.Optional(Type.String()),
          reasoning: Type.Optional(Type.String()),
          tool_calls: Type.Optional(Type.Array(ToolCall)),
        }),
        finish_reason: nullable(Type.Enum(['stop', 'tool_calls', 'error'])),
      }),
    ),
    error: Type.Optional(ChunkError),
    session_id: Type.Optional(nullable(Type.String({ description: 'Set in the last chunk' }))),
    usage: Type.Optional(
      nullable(
        Type.Object({
          prompt_tokens: Type.Integer(),
          completion_tokens: Type.Integer(),
          total_tokens: Type.Integer(),
          prompt_tokens_details: Type.Optional(Type.Object({ cached_tokens: Type.Integer() })),
          cost: Type.Optional(Type.Number({ description: 'USD, as the model calls of the run were charged' })),
        }),
      ),
    ),
  },
  { $id: 'InternChatCompletionChunk' },
);

export const SteeredReply = Type.Object(
  { session_id: Type.String(), status: Type.Literal('steered') },
  { $id: 'InternChatSteeredResponse' },
);

export const InvokedReply = Type.Object(
  { session_id: Type.String(), status: Type.Enum(['started', 'steered']) },
  { $id: 'InternInvokeResponse' },
);

export type ChatBody = Static<typeof ChatBodySchema>;
export type InvokeBody = Static<typeof InvokeBodySchema>;
export type Chunk = Static<typeof ChunkSchema>;
export type InvokedReply = Static<typeof InvokedReply>;
