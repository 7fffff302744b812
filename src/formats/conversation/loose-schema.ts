/** Schemas of optional request members, which clients either leave out or set to null. */
import Type, { type TSchema } from 'typebox';

/** The same schema with null allowed. One schema with several types, so that an error names the rule that failed. */
export function nullable(schema: TSchema): TSchema {
  const { type, enum: values, ...others } = schema as TSchema & { type?: string; enum?: unknown[] };
  if (values !== undefined) return Type.Unsafe({ ...others, enum: [...values, null] });
  return Type.Unsafe({ ...others, type: [type, 'null'] });
}

/** One of the given words. */
export function word(values: readonly string[]): TSchema {
  return Type.Unsafe({ enum: [...values] });
}

export function optional(schema: TSchema) {
  return Type.Optional(nullable(schema));
}

/** `explicit`: only marked blocks are cached. */
export const PromptCacheOptionsSchema = Type.Object(
  { mode: word(['explicit']), ttl: optional(Type.String()) },
  { $id: 'PromptCacheOptions' },
);

export const range = (minimum: number, maximum: number) => Type.Number({ minimum, maximum });
