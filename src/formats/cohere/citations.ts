/** Citations of the cohere format: a text range with the documents or tool results that support it. */
import type { Citation } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOrUndefined } from '../conversation/fields.ts';

/** Content block index, or the plan, which has no content block. */
type Cited = number | 'plan';

/** The cited text: the index of its content block, or the plan. */
export function placeOf(value: unknown): Cited {
  const { type, content_index: index } = fieldsOf(value);
  if (type === 'PLAN') return 'plan';
  return typeof index === 'number' ? index : 0;
}

/**
 * Only a source with a URL has an equivalent in other formats. `start` and `end` count characters of the cited text.
 */
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
