/** Citations of the cohere form: a range of a text and the documents or tool results that support it. */
import type { Citation } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOrUndefined } from '../conversation/fields.ts';

/** The one part of an answer that has no content block of its own. */
export type Cited = number | 'plan';

/** Where the cited text stands: the index of its content block, or the plan. */
export function placeOf(value: unknown): Cited {
  const { type, content_index: index } = fieldsOf(value);
  if (type === 'PLAN') return 'plan';
  return typeof index === 'number' ? index : 0;
}

/** A source with an address has a counterpart in other forms; `start` and `end` count letters of the cited text. */
export function decodeCitation(value: unknown): Citation {
  const citation: Citation = { native: { origin: 'cohere', value } };
  if (!isFields(value)) return citation;
  if (typeof value['start'] === 'number') citation.start = value['start'];
  if (typeof value['end'] === 'number') citation.end = value['end'];
  const documents = listOf(value['sources']).map((source) => contentOf(fieldsOf(source)));
  const document = documents.find(({ url }) => typeof url === 'string' && /^https?:/.test(url)) ?? documents[0];
  if (document === undefined) return citation;
  const { url, title } = document;
  if (typeof url === 'string' && /^https?:/.test(url)) citation.url = url;
  if (typeof title === 'string') citation.title = title;
  const cited = textOrUndefined(document['text']) ?? textOrUndefined(document['snippet']);
  if (cited !== undefined) citation.citedText = cited;
  return citation;
}

function contentOf(source: Fields): Fields {
  return fieldsOf(source['document'] ?? source['tool_output']);
}
