/** Wire schemas of logged content and feedback. */
import { Type } from 'typebox';
import { closed } from '../http/contract.ts';

const NullableText = Type.Union([Type.String(), Type.Null()]);

const Attempt = Type.Object({
  code: Type.Integer(),
  message: Type.String(),
  provider_name: NullableText,
  raw: NullableText,
});

export const GenerationContent = Type.Object(
  {
    data: Type.Object({
      input: Type.Union([Type.Object({ prompt: Type.String() }), Type.Object({ messages: Type.Array(Type.Any()) })], {
        description: 'As the client sent it; content over the size limit is left out and marked',
      }),
      output: Type.Object({
        completion: NullableText,
        reasoning: NullableText,
        tool_calls: Type.Optional(
          Type.Array(Type.Object({ id: Type.String(), name: Type.String(), arguments: Type.String() })),
        ),
        truncated: Type.Optional(Type.Literal(true, { description: 'The answer exceeds the size limit' })),
      }),
      error: Type.Union([
        Type.Object({
          message: NullableText,
          status: Type.Union([Type.Integer(), Type.Null()]),
          provider_name: NullableText,
          raw: NullableText,
          previous_errors: Type.Array(Attempt),
        }),
        Type.Null(),
      ]),
    }),
  },
  { $id: 'GenerationContent' },
);

const FEEDBACK_CATEGORIES = [
  'latency',
  'incoherence',
  'incorrect_response',
  'formatting',
  'billing',
  'api_error',
  'other',
] as const;

export const FeedbackBody = Type.Object(
  {
    generation_id: Type.String({ minLength: 1, maxLength: 100 }),
    category: Type.Enum([...FEEDBACK_CATEGORIES]),
    comment: Type.Optional(Type.String({ maxLength: 1000 })),
  },
  { ...closed, $id: 'FeedbackRequest' },
);

export const FeedbackReply = Type.Object({ data: Type.Object({ success: Type.Literal(true) }) }, { $id: 'Feedback' });
