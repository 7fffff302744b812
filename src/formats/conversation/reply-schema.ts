/**
 * Parts of the reply schemas of served formats, for the OpenAPI document. Replies allow additional members, because an
 * upstream's other members pass through, and are not validated at run time.
 */
import { type TSchema, Type } from 'typebox';

export const orNull = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
export const Count = Type.Integer({ minimum: 0 });
export const open = { additionalProperties: true } as const;

export const ENDS_WITH_DONE = 'The last event is `[DONE]`; lines that begin with a colon keep the connection alive.';

const CostDetails = Type.Object(
  {
    upstream_inference_cost: orNull(Type.Number()),
    upstream_inference_prompt_cost: Type.Number(),
    upstream_inference_completions_cost: Type.Number(),
  },
  { $id: 'CostDetails' },
);

/** Members of the usage. */
export const Charged = {
  cost: Type.Optional(Type.Number({ description: 'USD charged; absent when the model has no price' })),
  is_byok: Type.Boolean(),
  cost_details: Type.Optional(CostDetails),
};
