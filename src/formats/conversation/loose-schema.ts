/** Schemas of request members that clients leave out or set to null as they like. */
import Type, { type TSchema } from 'typebox';

/** The same schema, null allowed. One schema with a list of types, so that a wrong value is told by its own rule. */
export function nullable(schema: TSchema): TSchema {
  const { type, enum: values, ...others } = schema as TSchema & { type?: string; enum?: unknown[] };
  if (values !== undefined) return Type.Unsafe({ ...others, enum: [...values, null] });
  return Type.Unsafe({ ...others, type: [type, 'null'] });
}

/** One of the words. */
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
