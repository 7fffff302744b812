/** Building blocks for the contracts of operations: schemas, pages, path parameters. */
import { type TSchema, Type } from 'typebox';
import type { Exchange, Operation } from './operation.ts';

/** For an object without additional members. */
export const closed = { additionalProperties: false };

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const PAGE_SIZE = 50;

/** Query members of a list operation. */
export const pageMembers = {
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: PAGE_SIZE })),
};

/** The query of a list without other parameters. */
export const PageQuery = Type.Object(pageMembers, closed);

export interface Page {
  offset: number;
  limit: number;
}

/** The page that a query with `pageMembers` asks for; by default the first. */
export function pageOf(query: Partial<Page>): Page {
  const { offset = 0, limit = PAGE_SIZE } = query;
  return { offset, limit };
}

/** The reply of a list operation, for a schema with a name. */
export function listOf<T extends TSchema>(schema: T) {
  return Type.Object(
    { data: Type.Array(schema), total_count: Type.Integer({ description: 'Over all pages' }) },
    { $id: `${(schema as { $id?: string }).$id}List` },
  );
}

/** One page of a list, and the number of items over all pages. */
export function listReply<T>(data: T[], total: number): { data: T[]; total_count: number } {
  return { data, total_count: total };
}

/** The reply of an operation that deletes. */
export const DeletedEnvelope = Type.Object({ deleted: Type.Literal(true) }, { $id: 'Deleted' });

/** The replies of an operation that answers with 200. */
export function ok(description: string, schema: TSchema): Operation['replies'] {
  return { 200: { description, schema } };
}

/** The `{id}` of the path, in lower case as the gateway writes ids. */
export function idOf({ params }: Pick<Exchange, 'params'>): string {
  return (params['id'] ?? '').toLowerCase();
}
