/** Parallel (docs.parallel.ai): `POST /v1/search`. */
import { fieldsOf, listOf } from '../../../formats/conversation/fields.ts';
import type { SearchEngine } from '../engine.ts';
import { resultsOf } from '../results.ts';

const MODES = ['turbo', 'basic', 'advanced'];
const LONGEST_QUERY = 200;

export const parallel: SearchEngine = {
  kind: 'parallel',
  url: 'https://api.parallel.ai',
  request: ({ query, maxResults, allowedDomains, excludedDomains, maxCharacters, mode, country }, key) => ({
    path: '/v1/search',
    headers: { 'x-api-key': key },
    body: {
      objective: query,
      search_queries: [query.slice(0, LONGEST_QUERY)],
      ...(mode !== undefined && MODES.includes(mode) && { mode }),
      advanced_settings: {
        max_results: maxResults,
        excerpt_settings: { max_chars_per_result: maxCharacters },
        ...(country && { location: country.toLowerCase() }),
        ...((allowedDomains || excludedDomains) && {
          source_policy: {
            ...(allowedDomains && { include_domains: allowedDomains }),
            ...(excludedDomains && { exclude_domains: excludedDomains }),
          },
        }),
      },
    },
  }),
  read: (reply) => resultsOf(listOf(fieldsOf(reply)['results']), { text: ['excerpts'], published: 'publish_date' }),
};
