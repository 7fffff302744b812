/** The request body of `POST /rerank`: schema, rules, and the view that adapters read. */
import Type, { type TSchema } from 'typebox';
import { invalidField } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { type Fields, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { checkCommon, commonMembers } from '../direct/body.ts';

/** More documents than any service ranks at once. */
const MAX_DOCUMENTS = 10_000;

/** Has at least one of the two. `image` is a URL or a data URL. */
export interface RerankDocument {
  text?: string;
  image?: string;
}

export interface RerankRequest {
  document: JsonDocument;
  query: string;
  documents(): readonly RerankDocument[];
  /** Number of documents. */
  count: number;
  /** Number of requested results, at most `count`. */
  topN: number;
}

export const schema: TSchema = Type.Object(
  {
    ...commonMembers,
    query: Type.String(),
    documents: Type.Array(Type.Unsafe({ type: ['string', 'object'], description: 'A string, or {text, image}' }), {
      minItems: 1,
      maxItems: MAX_DOCUMENTS,
    }),
    top_n: Type.Optional(Type.Unsafe({ type: ['integer', 'null'], minimum: 1 })),
  },
  { $id: 'RerankRequest' },
);

export function check(document: JsonDocument): void {
  checkCommon(document);
  listOf(document.structure['documents']).forEach((item, index) => {
    const path = `documents[${index}]`;
    if (typeof item === 'string') return;
    if (!isFields(item)) throw invalidField(path, 'must be a string or an object');
    for (const member of ['text', 'image']) {
      const value = item[member];
      if (value !== undefined && value !== null && typeof value !== 'string') {
        throw invalidField(`${path}.${member}`, 'must be a string');
      }
    }
    if (typeof item['text'] !== 'string' && textOf(item['image']) === '') {
      throw invalidField(path, 'must have a text or an image');
    }
  });
}

export function decode(document: JsonDocument): RerankRequest {
  const count = listOf(document.structure['documents']).length;
  const wanted = document.structure['top_n'];
  let documents: readonly RerankDocument[] | undefined;
  return {
    document,
    query: textOf(document.member('query')),
    documents() {
      documents ??= listOf(document.member('documents')).map(decodeDocument);
      return documents;
    },
    count,
    topN: Math.min(typeof wanted === 'number' ? wanted : count, count),
  };
}

function decodeDocument(item: unknown): RerankDocument {
  if (typeof item === 'string') return { text: item };
  const text = textOrUndefined((item as Fields)['text']);
  const image = textOrUndefined((item as Fields)['image']);
  return { ...(text !== undefined && { text }), ...(image !== undefined && image !== '' && { image }) };
}

export function imagesIn(document: JsonDocument): number {
  return listOf(document.structure['documents']).filter((item) => isFields(item) && textOf(item['image']) !== '')
    .length;
}

/** Length of the query plus the longest document, in bytes. */
export function longestPair(document: JsonDocument): number {
  const query = textOf(document.structure['query']).length;
  const documents = listOf(document.structure['documents']);
  const longest = documents.reduce<number>((most, item) => {
    const text = isFields(item) ? textOf(item['text']) : textOf(item);
    return Math.max(most, text.length);
  }, 0);
  return query + longest;
}
