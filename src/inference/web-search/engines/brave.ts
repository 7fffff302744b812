/** Brave (api-dashboard.search.brave.com): `GET /res/v1/web/search`. Domains are operators of the query. */
import { fieldsOf, listOf } from '../../../formats/conversation/fields.ts';
import type { SearchEngine } from '../engine.ts';
import { resultsOf, withSites } from '../results.ts';

const MOST_RESULTS = 20;
const LONGEST_QUERY = 400;

export const brave: SearchEngine = {
  kind: 'brave',
  url: 'https://api.search.brave.com',
  request: (query, key) => {
    const parameters = new URLSearchParams({
      q: withSites(query, LONGEST_QUERY),
      count: String(Math.min(query.maxResults, MOST_RESULTS)),
      ...(query.country && { country: query.country }),
    });
    return {
      path: `/res/v1/web/search?${parameters}`,
      headers: { accept: 'application/json', 'x-subscription-token': key },
    };
  },
  read: (reply) =>
    resultsOf(listOf(fieldsOf(fieldsOf(reply)['web'])['results']), {
      text: ['extra_snippets', 'description'],
      published: 'page_age',
    }),
};
