/** Perplexity (docs.perplexity.ai): `POST /search`, ranked results without an answer. */
import { fieldsOf, listOf } from '../../../formats/conversation/fields.ts';
import type { SearchEngine } from '../engine.ts';
import { resultsOf } from '../results.ts';

const MOST_RESULTS = 20;
const MOST_DOMAINS = 20;

export const perplexity: SearchEngine = {
  kind: 'perplexity',
  url: 'https://api.perplexity.ai',
  request: ({ query, maxResults, allowedDomains, excludedDomains, country }, key) => {
    const domains = allowedDomains ?? excludedDomains?.map((domain) => `-${domain}`);
    return {
      path: '/search',
      headers: { authorization: `Bearer ${key}` },
      body: {
        query,
        max_results: Math.min(maxResults, MOST_RESULTS),
        ...(domains && { search_domain_filter: domains.slice(0, MOST_DOMAINS) }),
        ...(country && { country }),
      },
    };
  },
  read: (reply) => resultsOf(listOf(fieldsOf(reply)['results']), { text: ['snippet'], published: 'date' }),
};
