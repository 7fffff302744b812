/** Citations of the converse format. Only web citations have a URL and therefore an equivalent in other formats. */
import type { Citation } from '../conversation/conversation.ts';
import { fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';

export function decodeCitation(value: unknown): Citation {
  const citation: Citation = { native: { origin: 'converse', value } };
  if (!isFields(value)) return citation;
  const url = fieldsOf(fieldsOf(value['location'])['web'])['url'];
  if (typeof url === 'string') citation.url = url;
  if (typeof value['title'] === 'string') citation.title = value['title'];
  const cited = listOf(value['sourceContent']).map((piece) => textOf(fieldsOf(piece)['text']));
  if (cited.length > 0) citation.citedText = cited.join('');
  return citation;
}
