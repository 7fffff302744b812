/** The section `web_search` of the yaml (docs/guides/server-tools.md). */
import type { Nano } from '../money.ts';
import { Secret } from '../secret.ts';
import type { Field } from './field.ts';
import { baseUrl, CREDENTIAL } from './provider-readers.ts';
import { distinct, list, mapping, oneOf, textLike, usd } from './readers.ts';

const SEARCH_KINDS = ['exa', 'parallel', 'firecrawl', 'perplexity', 'tavily', 'brave', 'searxng'] as const;
export type SearchKind = (typeof SEARCH_KINDS)[number];

/** The engines that requests can name. */
const SEARCH_NAMES = ['exa', 'parallel', 'firecrawl', 'perplexity'] as const;
type SearchName = (typeof SEARCH_NAMES)[number];

export interface SearchEngineSettings {
  kind: SearchKind;
  /** Without a trailing slash; null: the service's own. */
  url: string | null;
  /** null for engines that need none. */
  apiKey: Secret | null;
  /** Further engine names in requests that this engine serves. */
  serves: readonly SearchName[];
  /** What a search costs the gateway's customers. */
  costNano: Nano;
}

export interface WebSearchSettings {
  /** In order: requests that leave the choice to the gateway use the first. */
  engines: readonly SearchEngineSettings[];
}

export const NO_WEB_SEARCH: WebSearchSettings = Object.freeze({ engines: Object.freeze([]) });

const credential = textLike(CREDENTIAL, 'a text without spaces or control characters, as a header carries it');

export function webSearch(field: Field): WebSearchSettings | undefined {
  const read = mapping(field, { engines: list(engine) });
  if (!read) return undefined;
  return { engines: (read.engines ?? []).filter((each) => each !== undefined) };
}

function engine(field: Field): SearchEngineSettings | undefined {
  const read = mapping(
    field,
    {
      kind: oneOf(SEARCH_KINDS),
      url: baseUrl,
      api_key: credential,
      serves: distinct(oneOf(SEARCH_NAMES)),
      price_per_search: usd,
    },
    ['kind'],
  );
  if (read?.kind === undefined) return undefined;
  const { kind } = read;
  if (kind === 'searxng' && read.url === undefined)
    return field.fail('must have a url: searxng runs on your own server');
  if (kind !== 'searxng' && read.api_key === undefined) return field.fail(`must have an api_key for ${kind}`);
  return {
    kind,
    url: read.url ?? null,
    apiKey: read.api_key === undefined ? null : new Secret(read.api_key),
    serves: read.serves ?? [],
    costNano: read.price_per_search ?? 0n,
  };
}
