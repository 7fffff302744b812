/** SearXNG (docs.searxng.org): `GET /search?format=json`, which its settings have to enable. It has no limit of results. */
import { fieldsOf, listOf } from '../../../formats/conversation/fields.ts';
import type { SearchEngine } from '../engine.ts';
import { resultsOf, withSites } from '../results.ts';

const LONGEST_QUERY = 1000;

export const searxng: SearchEngine = {
  kind: 'searxng',
  url: '',
  request: (query, key) => ({
    path: `/search?${new URLSearchParams({ q: withSites(query, LONGEST_QUERY), format: 'json' })}`,
    headers: { accept: 'application/json', ...(key !== '' && { authorization: `Bearer ${key}` }) },
  }),
  read: (reply) => resultsOf(listOf(fieldsOf(reply)['results']), { text: ['content'], published: 'publishedDate' }),
};
