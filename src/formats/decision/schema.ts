/** The request and reply of a decision. */
import { Type } from 'typebox';
import { PreferencesSchema } from '../conversation/preferences.ts';

/** A text, or structured guidance. */
const Guidance = Type.Unsafe({ type: ['string', 'object', 'array'] });
const MOST_QUESTIONS = 100;
const MOST_OPTIONS = 256;

const Question = Type.Object(
  {
    type: Type.Union([Type.Literal('choice'), Type.Literal('score'), Type.Literal('noul')]),
    instructions: Guidance,
    criteria: Type.Optional(
      Type.Unsafe({
        type: ['object', 'array'],
        maxProperties: MOST_OPTIONS,
        maxItems: MOST_OPTIONS,
        description:
          '`choice`: guidance by option, or null. `score`: guidance for each level, lowest first. `noul`: for `true` and `false`',
      }),
    ),
  },
  { $id: 'DecisionQuestion' },
);

export const schema = Type.Object(
  {
    model: Type.String({ minLength: 1 }),
    state: Type.Unsafe({ type: ['string', 'object', 'array'], description: 'What the questions are about' }),
    questions: Type.Record(Type.String(), Question, { minProperties: 1, maxProperties: MOST_QUESTIONS }),
    provider: Type.Optional(Type.Union([PreferencesSchema, Type.Null()])),
    session_id: Type.Optional(Type.String({ maxLength: 256 })),
    trace: Type.Optional(Type.Object({})),
    user: Type.Optional(Type.String({ maxLength: 256 })),
  },
  { $id: 'DecisionRequest' },
);

const Answer = Type.Union([
  Type.Object({ type: Type.Literal('choice'), choice: Type.String() }, { $id: 'DecisionChoice' }),
  Type.Object(
    {
      type: Type.Literal('score'),
      score: Type.Number({ description: 'From 0, the lowest level' }),
      legend: Type.Record(Type.String(), Guidance),
    },
    { $id: 'DecisionScore' },
  ),
  Type.Object(
    { type: Type.Literal('noul'), noul: Type.Number({ description: 'Probability of yes, from 0 to 1' }) },
    { $id: 'DecisionNoul' },
  ),
]);

export const DecisionReply = Type.Object(
  {
    id: Type.String(),
    model: Type.String(),
    provider: Type.Optional(Type.String()),
    answers: Type.Record(Type.String(), Answer, {
      description: 'By question; a question that the model did not answer is missing',
    }),
    usage: Type.Object({
      input_tokens: Type.Integer(),
      output_tokens: Type.Integer(),
      cost: Type.Optional(Type.Number()),
    }),
  },
  { $id: 'Decision' },
);
