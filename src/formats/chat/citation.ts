/** Citations in chat messages: `annotations` of the message or delta. */
import type { Citation } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, listOf, textOf } from '../conversation/fields.ts';

export function decodeCitations(annotations: unknown): Citation[] {
  return listOf(annotations).flatMap((entry) => {
    const value = fieldsOrUndefined(entry);
    if (value === undefined) return [];
    const citation: Citation = { native: { origin: 'chat', value } };
    const about = fieldsOrUndefined(value['url_citation']) ?? fieldsOrUndefined(value['web_search_citation']);
    if (about !== undefined) {
      citation.url = textOf(about['url']);
      if (typeof about['title'] === 'string') citation.title = about['title'];
      const quote = about['content'] ?? about['cited_text'];
      if (typeof quote === 'string') citation.citedText = quote;
      if (typeof about['start_index'] === 'number') citation.start = about['start_index'];
      if (typeof about['end_index'] === 'number') citation.end = about['end_index'];
    }
    return [citation];
  });
}

/**
 * The annotation of a citation; undefined when chat cannot express it (a page of a document). `offset` and `end` are
 * where the cited text part starts and ends within the message's text.
 */
export function encodeCitation(citation: Citation, offset: number, end: number): Fields | undefined {
  if (citation.native?.origin === 'chat') return citation.native.value as Fields;
  if (citation.url === undefined) return undefined;
  return {
    type: 'url_citation',
    url_citation: {
      url: citation.url,
      title: citation.title ?? '',
      ...(citation.citedText !== undefined && { content: citation.citedText }),
      start_index: offset + (citation.start ?? 0),
      end_index: citation.end === undefined ? end : offset + citation.end,
    },
  };
}

/**
 * Sources sent next to the answer: `citations` of Perplexity and xAI (URLs), `search_results` (with titles),
 * `web_search` of Z.AI. If the message has annotations, only those are used.
 */
export function sourceCitations(reply: Fields, annotations: unknown): Citation[] {
  if (listOf(annotations).length > 0) return [];
  const results = [...listOf(reply['search_results']), ...listOf(reply['web_search'])].map((result) =>
    fieldsOf(result),
  );
  const cited = listOf(reply['citations']);
  return (cited.length > 0 ? cited : results).flatMap((entry) => {
    const url = textOf(entry) || addressOf(fieldsOf(entry));
    if (url === '') return [];
    const found = results.find((result) => addressOf(result) === url) ?? fieldsOrUndefined(entry);
    const title = found?.['title'];
    return [{ url, ...(typeof title === 'string' && { title }) }];
  });
}

export function hasSources(reply: Fields): boolean {
  return listOf(reply['citations'] ?? reply['search_results'] ?? reply['web_search']).length > 0;
}

function addressOf(source: Fields): string {
  return textOf(source['url']) || textOf(source['link']);
}
