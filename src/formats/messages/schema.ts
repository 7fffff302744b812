/**
 * The request body of `POST /messages`: an open schema that names what the gateway acts on; members of later versions
 * pass. Content blocks and rules across members are checked in `check.ts`, whose errors name the block instead of a
 * union of all.
 */
import Type, { type TSchema } from 'typebox';
import { DeferredToolsSchema } from '../adapters/deferred-tools/index.ts';
import { PreferencesSchema } from '../conversation/preferences.ts';
import { featureMembers } from '../server-tools/index.ts';

const Words = (...words: string[]) => Type.Unsafe<string>({ type: 'string', enum: words });

const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const Effort = Words('low', 'medium', 'high', 'xhigh', 'max');

const CacheControl = Type.Object({
  type: Words('ephemeral'),
  ttl: Type.Optional(Words('5m', '1h')),
});

const Block = Type.Object(
  {
    type: Type.String(),
    cache_control: Type.Optional(Nullable(CacheControl)),
  },
  { $id: 'MessagesBlock' },
);

const Content = Type.Union([Type.String(), Type.Array(Block)], { $id: 'MessagesContent' });

const Message = Type.Object(
  {
    role: Words('user', 'assistant', 'system'),
    content: Content,
    clear_at: Type.Optional(Nullable(Words('next_user_message', 'never'))),
    output_config: Type.Optional(Nullable(Type.Object({ effort: Type.Optional(Nullable(Effort)) }))),
  },
  { $id: 'MessagesMessage' },
);

const Thinking = Type.Object(
  {
    type: Words('enabled', 'disabled', 'adaptive'),
    budget_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
    display: Type.Optional(Nullable(Words('summarized', 'omitted', 'updates'))),
  },
  { $id: 'MessagesThinking' },
);

const Tool = Type.Object(
  {
    type: Type.Optional(Nullable(Type.String())),
    name: Type.Optional(Type.String({ minLength: 1 })),
    description: Type.Optional(Type.String()),
    cache_control: Type.Optional(Nullable(CacheControl)),
    defer_loading: Type.Optional(Nullable(Type.Boolean())),
  },
  { $id: 'MessagesTool' },
);

const ToolChoice = Type.Object(
  {
    type: Words('auto', 'any', 'none', 'tool'),
    name: Type.Optional(Type.String()),
    disable_parallel_tool_use: Type.Optional(Type.Boolean()),
  },
  { $id: 'MessagesToolChoice' },
);

const OutputConfig = Type.Object(
  {
    effort: Type.Optional(Nullable(Effort)),
    format: Type.Optional(
      Nullable(Type.Object({ type: Words('json_schema'), schema: Type.Record(Type.String(), Type.Unknown()) })),
    ),
    task_budget: Type.Optional(Nullable(Type.Object({ type: Words('tokens'), total: Type.Integer() }))),
  },
  { $id: 'MessagesOutputConfig' },
);

export const schema = Type.Object(
  {
    model: Type.String({ minLength: 1 }),
    messages: Type.Array(Message),
    max_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
    system: Type.Optional(Content),
    stream: Type.Optional(Type.Boolean()),
    cache_control: Type.Optional(Nullable(CacheControl)),
    deferred_tools: Type.Optional(Nullable(DeferredToolsSchema)),
    context_management: Type.Optional(Nullable(Type.Object({ edits: Type.Optional(Type.Array(Type.Unknown())) }))),
    fallbacks: Type.Optional(
      Nullable(
        Type.Array(Type.Object({ model: Type.String({ minLength: 1 }) }, { additionalProperties: false }), {
          maxItems: 3,
          description: 'Models to try in order if the first one fails or refuses',
        }),
      ),
    ),
    metadata: Type.Optional(Type.Object({ user_id: Type.Optional(Nullable(Type.String())) })),
    models: Type.Optional(Nullable(Type.Array(Type.String()))),
    output_config: Type.Optional(Nullable(OutputConfig)),
    ...featureMembers,
    preset: Type.Optional(Nullable(Type.String())),
    provider: Type.Optional(Nullable(PreferencesSchema)),
    route: Type.Optional(Nullable(Words('fallback', 'sort'))),
    safeguards: Type.Optional(Nullable(Type.Array(Type.Object({ type: Type.String() })))),
    service_tier: Type.Optional(Nullable(Type.String())),
    session_id: Type.Optional(Type.String({ maxLength: 256 })),
    speed: Type.Optional(Nullable(Words('fast', 'standard'))),
    stop_sequences: Type.Optional(Nullable(Type.Array(Type.String()))),
    temperature: Type.Optional(Nullable(Type.Number({ minimum: 0, maximum: 2 }))),
    thinking: Type.Optional(Nullable(Thinking)),
    tool_choice: Type.Optional(Nullable(ToolChoice)),
    tools: Type.Optional(Nullable(Type.Array(Tool))),
    top_k: Type.Optional(Nullable(Type.Integer())),
    top_p: Type.Optional(Nullable(Type.Number({ minimum: 0, maximum: 1 }))),
    trace: Type.Optional(Nullable(Type.Object({}))),
    user: Type.Optional(Type.String({ maxLength: 256 })),
  },
  { $id: 'MessagesRequest' },
);
