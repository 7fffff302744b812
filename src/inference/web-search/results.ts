/** Functions for the replies and queries of all engines. */
import { fieldsOf, listOf, textOf } from '../../formats/conversation/fields.ts';
import type { SearchQuery, SearchResult } from './engine.ts';

interface Members {
  /** The first that has a text counts; lists of texts are joined. */
  text: readonly string[];
  published?: string;
}

/** Results without an http(s) URL are left out. */
export function resultsOf(list: readonly unknown[], members: Members): SearchResult[] {
  return list.flatMap((entry) => {
    const value = fieldsOf(entry);
    const url = textOf(value['url']);
    if (!/^https?:\/\/[^\s]+$/.test(url)) return [];
    const text = members.text.map((name) => joined(value[name])).find((each) => each !== '') ?? '';
    const published = members.published === undefined ? '' : textOf(value[members.published]);
    return [{ url, title: plain(textOf(value['title'])), text: plain(text), ...(published !== '' && { published }) }];
  });
}

function joined(value: unknown): string {
  if (typeof value === 'string') return value;
  return listOf(value).map(textOf).filter(Boolean).join('\n\n');
}

/** Some engines emphasize the words of the query. */
function plain(text: string): string {
  return text.replace(/<\/?(?:strong|b|em|mark)>/gi, '').trim();
}

/** The query with its domains as search operators, for engines that have no lists of domains. */
export function withSites({ query, allowedDomains = [], excludedDomains = [] }: SearchQuery, longest: number): string {
  const sites = [
    allowedDomains.map((domain) => `site:${domain}`).join(' OR '),
    ...excludedDomains.map((domain) => `-site:${domain}`),
  ].filter(Boolean);
  const operators = sites.join(' ');
  const all = operators === '' ? query : `${query} ${operators}`;
  // Results are checked against the lists in any case.
  return all.length <= longest ? all : query.slice(0, longest);
}

/** Whether the URL's host is one of the domains or a subdomain of one. */
export function isOn(url: string, domains: readonly string[]): boolean {
  const host = URL.parse(url)?.hostname.toLowerCase().replace(/\.$/, '');
  if (host === undefined) return false;
  return domains.some((domain) => host === domain || host.endsWith(`.${domain}`));
}
