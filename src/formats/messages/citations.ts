/** Citations of text blocks. Only web search results have a URL, and therefore a counterpart in other formats. */
import type { Citation } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { isOfMissingTool } from './served-calls.ts';

const WEB_RESULT = 'web_search_result_location';

export function decodeCitation(value: unknown): Citation {
  const citation: Citation = { native: { origin: 'messages', value } };
  if (!isFields(value)) return citation;
  if (value['type'] === WEB_RESULT && typeof value['url'] === 'string') citation.url = value['url'];
  const title = value['title'] ?? value['document_title'];
  if (typeof title === 'string' || title === null) citation.title = title;
  if (typeof value['cited_text'] === 'string') citation.citedText = value['cited_text'];
  return citation;
}

/**
 * Whether the endpoint can read a citation that a client sends back: one of a search needs the mark of the service that
 * made it (ours have none), and its tool.
 */
export function isReadable(value: unknown, target: EncodeTarget): boolean {
  const { type, encrypted_index: mark } = fieldsOf(value);
  return type !== WEB_RESULT || (mark !== '' && !isOfMissingTool({ type: 'web_search_tool_result' }, target));
}

/** Returns undefined for an empty list, so that plain text stays plain. */
export function decodeCitations(value: unknown): Citation[] | undefined {
  const list = listOf(value);
  return list.length === 0 ? undefined : list.map(decodeCitation);
}

/**
 * For the client: the vendor's own record unchanged, a URL citation as a web search result, undefined for any other.
 */
export function encodeCitation(citation: Citation): unknown {
  if (citation.native?.origin === 'messages') return citation.native.value;
  if (citation.url === undefined) return undefined;
  return {
    type: WEB_RESULT,
    cited_text: citation.citedText ?? '',
    encrypted_index: '',
    title: citation.title ?? null,
    url: citation.url,
  } satisfies Fields;
}
