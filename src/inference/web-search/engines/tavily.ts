/** Tavily (docs.tavily.com): `POST /search`. */
import { fieldsOf, listOf } from '../../../formats/conversation/fields.ts';
import type { SearchEngine } from '../engine.ts';
import { resultsOf } from '../results.ts';

const MOST_RESULTS = 20;

export const tavily: SearchEngine = {
  kind: 'tavily',
  url: 'https://api.tavily.com',
  request: ({ query, maxResults, allowedDomains, excludedDomains, mode }, key) => ({
    path: '/search',
    headers: { authorization: `Bearer ${key}` },
    body: {
      query,
      max_results: Math.min(maxResults, MOST_RESULTS),
      ...(allowedDomains && { include_domains: allowedDomains }),
      ...(excludedDomains && { exclude_domains: excludedDomains }),
      ...((mode === 'basic' || mode === 'advanced') && { search_depth: mode }),
    },
  }),
  read: (reply) => resultsOf(listOf(fieldsOf(reply)['results']), { text: ['content'], published: 'published_date' }),
};
