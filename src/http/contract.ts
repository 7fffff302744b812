/** What the contracts of many operations are made of: pieces of their schemas, their pages, what their paths name. */
import { type TSchema, Type } from 'typebox';
import type { Exchange, Operation } from './operation.ts';

/** Of an object that has no members but those that it names. */
export const closed = { additionalProperties: false };

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const PAGE_SIZE = 50;

/** Members of the query of a list. */
export const pageMembers = {
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: PAGE_SIZE })),
};

/** The query of a list that takes nothing but a page. */
export const PageQuery = Type.Object(pageMembers, closed);

/** Which page a query with `pageMembers` asks for; the first one where it does not say. */
export function pageOf(query: { offset?: number; limit?: number }): { offset: number; limit: number } {
  const { offset = 0, limit = PAGE_SIZE } = query;
  return { offset, limit };
}

/** What an operation answers that takes something away. */
export const DeletedEnvelope = Type.Object({ deleted: Type.Literal(true) }, { $id: 'Deleted' });

/** The replies of an operation that answers with 200. */
export function ok(description: string, schema: TSchema): Operation['replies'] {
  return { 200: { description, schema } };
}

/** The `{id}` of the path, as ids of ours are written. */
export function idOf({ params }: Pick<Exchange, 'params'>): string {
  return (params['id'] ?? '').toLowerCase();
}
