/**
 * The body schema of `POST /responses`. It names the fields that the gateway uses and lets all others pass. Rules
 * across fields, and unsupported features, are in `check.ts`.
 */
import Type, { type TSchema } from 'typebox';
import { DeferredToolsSchema } from '../adapters/deferred-tools/index.ts';
import { EFFORTS } from '../conversation/effort.ts';
import { optional, PromptCacheOptionsSchema, range, word } from '../conversation/loose-schema.ts';
import { PreferencesSchema } from '../conversation/preferences.ts';
import { featureMembers } from '../server-tools/index.ts';

/** All item types in one shape; `check.ts` enforces what each type needs. */
const Item = Type.Object(
  {
    type: optional(Type.String({ minLength: 1 })),
    role: Type.Optional(Type.String()),
    content: Type.Optional(Type.Unsafe({ type: ['string', 'array', 'null'], items: { type: 'object' } })),
    output: Type.Optional(Type.Unsafe({ type: ['string', 'array', 'object', 'null'] })),
  },
  { $id: 'ResponsesItem' },
);

const Tool = Type.Object(
  {
    type: Type.String({ minLength: 1 }),
    name: optional(Type.String()),
    description: optional(Type.String()),
    parameters: optional(Type.Object({})),
    strict: optional(Type.Boolean()),
    defer_loading: optional(Type.Boolean()),
  },
  { $id: 'ResponsesTool' },
);

const Format = Type.Object(
  {
    type: word(['text', 'json_object', 'json_schema']),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
    description: optional(Type.String()),
    schema: Type.Optional(Type.Object({})),
    strict: optional(Type.Boolean()),
  },
  { $id: 'ResponsesTextFormat' },
);

const Reasoning = Type.Object(
  {
    effort: optional(word(EFFORTS)),
    summary: optional(word(['auto', 'concise', 'detailed'])),
    max_tokens: optional(Type.Integer({ minimum: 0 })),
    enabled: optional(Type.Boolean()),
    context: optional(word(['auto', 'all_turns', 'current_turn'])),
    mode: optional(word(['standard', 'pro'])),
  },
  { $id: 'ResponsesReasoning' },
);

export const schema: TSchema = Type.Object(
  {
    input: Type.Optional(Type.Unsafe({ type: ['string', 'array', 'null'], items: Item })),
    instructions: optional(Type.String()),
    prompt: optional(Type.Object({ id: Type.String({ minLength: 1 }) })),
    model: optional(Type.String({ minLength: 1 })),
    models: optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1 })),
    preset: optional(Type.String()),
    provider: optional(PreferencesSchema),
    stream: optional(Type.Boolean()),
    max_output_tokens: optional(Type.Integer({ minimum: 1 })),
    max_tool_calls: optional(Type.Integer({ minimum: 0 })),
    temperature: optional(range(0, 2)),
    top_p: optional(range(0, 1)),
    top_k: optional(Type.Integer({ minimum: 1 })),
    frequency_penalty: optional(range(-2, 2)),
    presence_penalty: optional(range(-2, 2)),
    top_logprobs: optional(Type.Integer({ minimum: 0, maximum: 20 })),
    tools: optional(Type.Array(Tool)),
    deferred_tools: optional(DeferredToolsSchema),
    tool_choice: Type.Optional(Type.Unsafe({ type: ['string', 'object', 'null'] })),
    parallel_tool_calls: optional(Type.Boolean()),
    text: optional(
      Type.Object({
        format: optional(Format),
        verbosity: optional(word(['low', 'medium', 'high', 'xhigh', 'max'])),
      }),
    ),
    reasoning: optional(Reasoning),
    include: optional(Type.Array(Type.String())),
    truncation: optional(word(['auto', 'disabled'])),
    service_tier: optional(word(['auto', 'default', 'fast', 'flex', 'priority', 'scale', 'ultrafast'])),
    modalities: optional(Type.Array(word(['text', 'image']))),
    image_config: optional(Type.Object({})),
    prompt_cache_key: optional(Type.String()),
    prompt_cache_options: optional(PromptCacheOptionsSchema),
    cache_control: optional(Type.Object({ type: word(['ephemeral']), ttl: optional(word(['5m', '1h'])) })),
    user: optional(Type.String({ maxLength: 256 })),
    safety_identifier: optional(Type.String()),
    session_id: optional(Type.String({ maxLength: 256 })),
    metadata: optional(Type.Record(Type.String(), Type.String({ maxLength: 512 }), { maxProperties: 16 })),
    trace: optional(Type.Object({})),
    debug: optional(Type.Object({ echo_upstream_body: optional(Type.Boolean()) })),
    ...featureMembers,
    background: optional(Type.Boolean()),
    store: optional(Type.Boolean()),
    conversation: Type.Optional(Type.Unsafe({ type: ['string', 'object', 'null'] })),
    previous_response_id: optional(Type.String({ minLength: 1, maxLength: 100 })),
    route: optional(word(['fallback', 'sort'])),
    transforms: optional(Type.Array(Type.String())),
  },
  { $id: 'ResponsesRequest' },
);
