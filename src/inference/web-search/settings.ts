/** The settings of a search that requests give: of `svc:web_search`, its shorthands, and the plugin `web`. */
import { invalidField } from '../../base/errors.ts';
import { type Fields, fieldsOf, isFields, textOrUndefined } from '../../formats/conversation/fields.ts';
import { Members } from '../tool-settings.ts';
import type { SearchQuery } from './engine.ts';

export interface SearchSettings {
  /** `auto`, `native`, or the name of an engine. */
  engine: string;
  /** Of each search. */
  query: Omit<SearchQuery, 'query'>;
}

const ENGINES = ['auto', 'native', 'exa', 'parallel', 'firecrawl', 'perplexity'];
const MODES = ['instant', 'fast', 'auto', 'deep-lite', 'deep', 'deep-reasoning', 'turbo', 'basic', 'advanced'];
const DEFAULT_RESULTS = 5;
const MAX_RESULTS = 25;
const MAX_CHARACTERS = 100_000;
/** Characters of all results together. */
const CONTEXT_CHARACTERS: Readonly<Record<string, number>> = { low: 5_000, medium: 15_000, high: 30_000 };

/** The names of the lists of domains, which differ in the plugin. */
const DOMAIN_LISTS = { allowed: 'allowed_domains', excluded: 'excluded_domains' };

/** @throws GatewayError 400 with the path of a member that is not valid. Unknown members are ignored. */
export function readSearchSettings(settings: Fields, path: string, lists = DOMAIN_LISTS): SearchSettings {
  const read = new Members(settings, path);
  const allowedDomains = read.domains(lists.allowed);
  const excludedDomains = read.domains(lists.excluded);
  if (allowedDomains !== undefined && excludedDomains !== undefined) {
    throw invalidField(`${path}.${lists.excluded}`, `cannot be combined with ${lists.allowed}`);
  }
  const maxResults = read.count('max_results', MAX_RESULTS) ?? DEFAULT_RESULTS;
  const size = read.word('search_context_size', Object.keys(CONTEXT_CHARACTERS)) ?? 'medium';
  const each = Math.ceil(CONTEXT_CHARACTERS[size]! / maxResults);
  return {
    engine: read.word('engine', ENGINES) ?? 'auto',
    query: {
      maxResults,
      maxCharacters: read.count('max_characters', MAX_CHARACTERS) ?? each,
      allowedDomains,
      excludedDomains,
      mode: read.word('mode', MODES),
      country: countryOf(settings['user_location'], `${path}.user_location`),
    },
  };
}

function countryOf(location: unknown, path: string): string | undefined {
  if (location === undefined || location === null) return undefined;
  if (!isFields(location)) throw invalidField(path, 'must be an object');
  const country = textOrUndefined(fieldsOf(location)['country']);
  if (country === undefined) return undefined;
  if (!/^[A-Za-z]{2}$/.test(country)) throw invalidField(`${path}.country`, 'must be a country code of two letters');
  return country.toUpperCase();
}
