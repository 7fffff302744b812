/** Citations in chat messages: `annotations` of the message or delta. */
import type { Citation } from '../conversation/conversation.ts';
import { type JsonObject, list, object, text } from './read.ts';

export function decodeCitations(annotations: unknown): Citation[] {
  return list(annotations).flatMap((entry) => {
    const value = object(entry);
    if (value === undefined) return [];
    const citation: Citation = { native: { origin: 'chat', value } };
    const about = object(value['url_citation']) ?? object(value['web_search_citation']);
    if (about !== undefined) {
      citation.url = text(about['url']);
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
export function encodeCitation(citation: Citation, offset: number, end: number): JsonObject | undefined {
  if (citation.native?.origin === 'chat') return citation.native.value as JsonObject;
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
export function sourceCitations(reply: JsonObject, annotations: unknown): Citation[] {
  if (list(annotations).length > 0) return [];
  const results = [...list(reply['search_results']), ...list(reply['web_search'])].map(
    (result) => object(result) ?? {},
  );
  const cited = list(reply['citations']);
  return (cited.length > 0 ? cited : results).flatMap((entry) => {
    const url = text(entry) || addressOf(object(entry) ?? {});
    if (url === '') return [];
    const found = results.find((result) => addressOf(result) === url) ?? object(entry);
    const title = found?.['title'];
    return [{ url, ...(typeof title === 'string' && { title }) }];
  });
}

export function hasSources(reply: JsonObject): boolean {
  return list(reply['citations'] ?? reply['search_results'] ?? reply['web_search']).length > 0;
}

function addressOf(source: JsonObject): string {
  return text(source['url']) || text(source['link']);
}
