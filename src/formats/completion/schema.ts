/** The body and the reply of `POST /completions`. */
import Type, { type TSchema } from 'typebox';
import { chat } from '../chat/index.ts';

/** Default output cap. */
export const DEFAULT_MAX_TOKENS = 16;

type Properties = Record<string, TSchema>;
const {
  messages: _m,
  logprobs: _l,
  top_logprobs: _t,
  ...shared
} = (chat.schema as TSchema & { properties: Properties }).properties;

export const schema: TSchema = Type.Object(
  {
    ...shared,
    prompt: Type.Unsafe({ type: ['string', 'array'], description: 'A string, a list of strings, or token ids' }),
    suffix: Type.Optional(Type.Unsafe({ type: ['string', 'null'] })),
    echo: Type.Optional(Type.Unsafe({ type: ['boolean', 'null'] })),
    best_of: Type.Optional(Type.Unsafe({ type: ['integer', 'null'], minimum: 1, maximum: 20 })),
    logprobs: Type.Optional(Type.Unsafe({ type: ['integer', 'null'], minimum: 0, maximum: 5 })),
  },
  { $id: 'CompletionRequest' },
);

const Count = Type.Integer({ minimum: 0 });
const open = { additionalProperties: true } as const;

/** For the OpenAPI document. */
export const CompletionReply = Type.Object(
  {
    id: Type.String({ description: '`gen-...`' }),
    object: Type.Literal('text_completion'),
    created: Type.Integer({ description: 'Unix seconds' }),
    model: Type.String(),
    choices: Type.Array(
      Type.Object(
        {
          text: Type.String(),
          index: Count,
          logprobs: Type.Union([Type.Object({}, open), Type.Null()]),
          finish_reason: Type.Union([Type.String(), Type.Null()]),
        },
        open,
      ),
    ),
    usage: Type.Object({ prompt_tokens: Count, completion_tokens: Count, total_tokens: Count }, open),
  },
  { ...open, $id: 'Completion' },
);
