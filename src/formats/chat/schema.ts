/**
 * The request body of `POST /chat/completions`: names the members the gateway acts on and lets the rest pass. Rules
 * over several members and unsupported features are in `check.ts`.
 */
import Type, { type TSchema } from 'typebox';
import { DeferredToolsSchema } from '../adapters/deferred-tools/index.ts';
import { EFFORTS } from '../conversation/effort.ts';
import { nullable, optional, PromptCacheOptionsSchema, range, word } from '../conversation/loose-schema.ts';
import { PreferencesSchema } from '../conversation/preferences.ts';
import { featureMembers } from '../server-tools/index.ts';

const CacheControl = Type.Object(
  {
    type: word(['ephemeral']),
    ttl: optional(word(['5m', '1h'])),
  },
  { $id: 'CacheControl' },
);

/** One shape for all kinds of part; `check.ts` checks what each kind requires. */
const ContentPart = Type.Object(
  {
    type: Type.String({ minLength: 1 }),
    text: optional(Type.String()),
    image_url: Type.Optional(
      Type.Object({ url: Type.String(), detail: optional(word(['auto', 'low', 'high', 'original'])) }),
    ),
    input_audio: Type.Optional(Type.Object({ data: Type.String(), format: Type.String() })),
    video_url: Type.Optional(Type.Object({ url: Type.String(), processing: optional(word(['agentic', 'static'])) })),
    file: Type.Optional(
      Type.Object({
        file_data: optional(Type.String()),
        file_id: optional(Type.String()),
        filename: optional(Type.String()),
      }),
    ),
    cache_control: optional(CacheControl),
    prompt_cache_breakpoint: optional(Type.Object({ mode: word(['explicit']) })),
  },
  { $id: 'ChatContentPart' },
);

const ToolCall = Type.Object(
  {
    id: Type.String(),
    type: optional(Type.String()),
    function: Type.Optional(Type.Object({ name: Type.String(), arguments: Type.String() })),
    custom: Type.Optional(Type.Object({ name: Type.String(), input: Type.String() })),
  },
  { $id: 'ChatToolCall' },
);

const Message = Type.Object(
  {
    role: word(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
    content: Type.Optional(Type.Union([Type.String(), Type.Array(ContentPart), Type.Null()])),
    name: optional(Type.String()),
    tool_call_id: Type.Optional(Type.String()),
    tool_calls: optional(Type.Array(ToolCall)),
    refusal: optional(Type.String()),
    reasoning: optional(Type.String()),
    reasoning_content: optional(Type.String()),
    reasoning_details: optional(Type.Array(nullable(Type.Object({ type: Type.String() })))),
    configuration_update: optional(Type.Object({ reasoning: Type.Object({ effort: word(EFFORTS) }) })),
  },
  { $id: 'ChatMessage' },
);

const Tool = Type.Object(
  {
    type: Type.String({ minLength: 1 }),
    function: Type.Optional(
      Type.Object({
        name: Type.String(),
        description: optional(Type.String()),
        parameters: optional(Type.Object({})),
        strict: optional(Type.Boolean()),
      }),
    ),
    cache_control: optional(CacheControl),
    defer_loading: optional(Type.Boolean()),
  },
  { $id: 'ChatTool' },
);

const Reasoning = Type.Object(
  {
    effort: optional(word(EFFORTS)),
    max_tokens: optional(Type.Integer({ minimum: 0 })),
    exclude: optional(Type.Boolean()),
    enabled: optional(Type.Boolean()),
    summary: optional(word(['auto', 'concise', 'detailed'])),
  },
  { $id: 'ReasoningSettings' },
);

const ResponseFormat = Type.Object(
  {
    type: word(['text', 'json_object', 'json_schema', 'grammar', 'python']),
    json_schema: Type.Optional(
      Type.Object({
        name: Type.String({ minLength: 1, maxLength: 64 }),
        description: optional(Type.String()),
        schema: optional(Type.Object({})),
        strict: optional(Type.Boolean()),
      }),
    ),
    grammar: Type.Optional(Type.String()),
  },
  { $id: 'ResponseFormat' },
);

export const schema: TSchema = Type.Object(
  {
    messages: Type.Array(Message, { minItems: 1 }),
    model: optional(Type.String({ minLength: 1 })),
    models: optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1 })),
    provider: optional(PreferencesSchema),
    stream: optional(Type.Boolean()),
    stream_options: optional(Type.Object({ include_usage: optional(Type.Boolean()) })),
    max_tokens: optional(Type.Integer({ minimum: 1 })),
    max_completion_tokens: optional(Type.Integer({ minimum: 1 })),
    temperature: optional(range(0, 2)),
    top_p: optional(range(0, 1)),
    top_k: optional(Type.Integer({ minimum: 1 })),
    top_a: optional(range(0, 1)),
    min_p: optional(range(0, 1)),
    frequency_penalty: optional(range(-2, 2)),
    presence_penalty: optional(range(-2, 2)),
    repetition_penalty: optional(Type.Number({ exclusiveMinimum: 0, maximum: 2 })),
    seed: optional(Type.Integer()),
    stop: Type.Optional(Type.Unsafe({ type: ['string', 'array', 'null'], items: { type: 'string' }, maxItems: 4 })),
    logprobs: optional(Type.Boolean()),
    top_logprobs: optional(Type.Integer({ minimum: 0, maximum: 20 })),
    logit_bias: optional(Type.Record(Type.String(), Type.Number())),
    n: optional(Type.Integer({ minimum: 1, maximum: 128 })),
    tools: optional(Type.Array(Tool)),
    deferred_tools: optional(DeferredToolsSchema),
    tool_choice: Type.Optional(Type.Unsafe({ type: ['string', 'object', 'null'] })),
    parallel_tool_calls: optional(Type.Boolean()),
    response_format: optional(ResponseFormat),
    reasoning: optional(Reasoning),
    reasoning_effort: optional(word(EFFORTS)),
    include_reasoning: optional(Type.Boolean()),
    verbosity: optional(word(['low', 'medium', 'high', 'xhigh', 'max'])),
    service_tier: optional(word(['auto', 'default', 'fast', 'flex', 'priority', 'scale', 'ultrafast'])),
    modalities: optional(Type.Array(word(['text', 'image', 'audio']))),
    audio: optional(Type.Object({})),
    image_config: optional(Type.Object({})),
    prediction: optional(Type.Object({ type: word(['content']) })),
    prompt_cache_key: optional(Type.String()),
    prompt_cache_options: optional(PromptCacheOptionsSchema),
    cache_control: optional(CacheControl),
    user: optional(Type.String()),
    session_id: optional(Type.String({ maxLength: 256 })),
    metadata: optional(Type.Record(Type.String(), Type.String({ maxLength: 512 }), { maxProperties: 16 })),
    trace: optional(Type.Object({})),
    debug: optional(Type.Object({ echo_upstream_body: optional(Type.Boolean()) })),
    ...featureMembers,
    transforms: optional(Type.Array(Type.String())),
    route: optional(word(['fallback', 'sort'])),
    preset: optional(Type.String()),
    max_tool_calls: optional(Type.Integer({ minimum: 0 })),
  },
  { $id: 'ChatRequest' },
);
