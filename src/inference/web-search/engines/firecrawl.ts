/** Firecrawl (docs.firecrawl.dev): `POST /v2/search`. Pages are not scraped, because that costs a credit each. */
import { fieldsOf, listOf } from '../../../formats/conversation/fields.ts';
import type { SearchEngine } from '../engine.ts';
import { resultsOf } from '../results.ts';

const LONGEST_QUERY = 500;

export const firecrawl: SearchEngine = {
  kind: 'firecrawl',
  url: 'https://api.firecrawl.dev',
  request: ({ query, maxResults, allowedDomains, excludedDomains, country }, key) => ({
    path: '/v2/search',
    headers: { authorization: `Bearer ${key}` },
    body: {
      query: query.slice(0, LONGEST_QUERY),
      limit: maxResults,
      sources: ['web'],
      ...(allowedDomains && { includeDomains: allowedDomains }),
      ...(excludedDomains && { excludeDomains: excludedDomains }),
      ...(country && { country }),
    },
  }),
  read: (reply) => resultsOf(listOf(fieldsOf(fieldsOf(reply)['data'])['web']), { text: ['markdown', 'description'] }),
};
