/** The contract of a search engine: its requests and its results. Pure; one file each in `engines/`. */
import type { SearchKind } from '../../base/config.ts';

/** One search, in words that all engines share. */
export interface SearchQuery {
  query: string;
  maxResults: number;
  /** Host names; results come from them and their subdomains only. */
  allowedDomains?: readonly string[] | undefined;
  excludedDomains?: readonly string[] | undefined;
  /** Most characters of the text of a result. */
  maxCharacters: number;
  /** An engine's own word for how thoroughly it searches; others ignore it. */
  mode?: string | undefined;
  /** ISO 3166-1 alpha-2, in upper case. */
  country?: string | undefined;
}

export interface SearchResult {
  url: string;
  title: string;
  /** The part of the page that the engine found relevant; '' for none. */
  text: string;
  /** As the engine writes it. */
  published?: string;
}

interface EngineRequest {
  /** Path and query below the base URL. */
  path: string;
  headers: Readonly<Record<string, string>>;
  /** JSON value of a POST; absent: GET. */
  body?: unknown;
}

export interface SearchEngine {
  readonly kind: SearchKind;
  /** Base URL of the service; '' where each operator has their own. */
  readonly url: string;
  request(query: SearchQuery, key: string): EngineRequest;
  /** @param reply parsed JSON of any shape */
  read(reply: unknown): SearchResult[];
}
