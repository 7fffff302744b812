/** Exa (docs.exa.ai): `POST /search`. */
import { fieldsOf, listOf } from '../../../formats/conversation/fields.ts';
import type { SearchEngine } from '../engine.ts';
import { resultsOf } from '../results.ts';

const MODES = ['instant', 'fast', 'auto', 'deep-lite', 'deep', 'deep-reasoning'];

export const exa: SearchEngine = {
  kind: 'exa',
  url: 'https://api.exa.ai',
  request: ({ query, maxResults, allowedDomains, excludedDomains, maxCharacters, mode, country }, key) => ({
    path: '/search',
    headers: { 'x-api-key': key },
    body: {
      query,
      numResults: maxResults,
      ...(allowedDomains && { includeDomains: allowedDomains }),
      ...(excludedDomains && { excludeDomains: excludedDomains }),
      ...(mode !== undefined && MODES.includes(mode) && { type: mode }),
      ...(country && { userLocation: country }),
      contents: { text: { maxCharacters } },
    },
  }),
  read: (reply) => resultsOf(listOf(fieldsOf(reply)['results']), { text: ['text'], published: 'publishedDate' }),
};
