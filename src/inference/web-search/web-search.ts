/** Searches the web with the engines that the installation configures. */
import type { SearchEngineSettings, WebSearchSettings } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Nano } from '../../base/money.ts';
import { type Egress, EgressError, type EgressReply } from '../../egress/index.ts';
import type { SearchEngine, SearchQuery, SearchResult } from './engine.ts';
import { brave } from './engines/brave.ts';
import { exa } from './engines/exa.ts';
import { firecrawl } from './engines/firecrawl.ts';
import { parallel } from './engines/parallel.ts';
import { perplexity } from './engines/perplexity.ts';
import { searxng } from './engines/searxng.ts';
import { tavily } from './engines/tavily.ts';
import { isOn } from './results.ts';

const ENGINES: readonly SearchEngine[] = [exa, parallel, firecrawl, perplexity, tavily, brave, searxng];

const MAX_REPLY_BYTES = 4 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

/** The engine that a request uses. */
export interface ChosenEngine {
  readonly settings: SearchEngineSettings;
  readonly engine: SearchEngine;
  /** Cost of a search. Reserve it before `search`, and charge it unless `search` rejects with `costs` false. */
  readonly costNano: Nano;
}

/** A search that failed. */
export class SearchError extends Error {
  /** The engine may charge for it. */
  readonly costs: boolean;

  constructor(message: string, costs: boolean) {
    super(message);
    this.name = 'SearchError';
    this.costs = costs;
  }
}

export interface WebSearch {
  /** An engine is configured. */
  readonly available: boolean;
  /**
   * @param wanted `auto`, or the name of an engine
   * @param path of the setting that names the engine
   * @throws GatewayError 400 that names the missing setting
   */
  choose(wanted: string, path: string): ChosenEngine;
  /** Rejects with SearchError. Results are within the query's lists of domains and its limits. */
  search(chosen: ChosenEngine, query: SearchQuery, signal: AbortSignal): Promise<SearchResult[]>;
}

/**
 * @param egress for addresses of the operator, which may be private
 * @param settings as currently configured
 */
export function createWebSearch(egress: Egress, settings: () => WebSearchSettings): WebSearch {
  return {
    get available() {
      return settings().engines.length > 0;
    },
    choose: (wanted, path) => choose(settings().engines, wanted, path),
    search: (chosen, query, signal) => search(egress, chosen, query, signal),
  };
}

function choose(engines: readonly SearchEngineSettings[], wanted: string, path: string): ChosenEngine {
  const settings =
    wanted === 'auto'
      ? engines[0]
      : (engines.find(({ kind }) => kind === wanted) ??
        engines.find(({ serves }) => serves.some((one) => one === wanted)));
  if (settings === undefined) {
    const problem =
      wanted === 'auto'
        ? 'needs a search engine, and none is configured'
        : `asks for ${wanted}, which is not configured`;
    throw new GatewayError('invalid_request', `${path} ${problem} (web_search.engines)`, {
      path,
      metadata: { setting: 'web_search.engines' },
    });
  }
  const engine = ENGINES.find(({ kind }) => kind === settings.kind)!;
  return { settings, engine, costNano: settings.costNano };
}

async function search(
  egress: Egress,
  { engine, settings }: ChosenEngine,
  query: SearchQuery,
  signal: AbortSignal,
): Promise<SearchResult[]> {
  const { path, headers, body } = engine.request(query, settings.apiKey?.reveal() ?? '');
  let reply: EgressReply;
  try {
    reply = await egress.request({
      url: `${settings.url ?? engine.url}${path}`,
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      maxBytes: MAX_REPLY_BYTES,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    throw new SearchError('the search engine did not answer', true);
  }
  if (reply.status !== 200) throw new SearchError(`the search engine answered with status ${reply.status}`, false);
  return withinQuery(engine.read(parsed(reply.body)), query);
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new SearchError('the search engine did not answer with JSON', true);
  }
}

/** Engines treat lists and limits as hints. */
function withinQuery(
  results: readonly SearchResult[],
  { allowedDomains, excludedDomains, maxResults, maxCharacters }: SearchQuery,
): SearchResult[] {
  return results
    .filter(({ url }) => allowedDomains === undefined || isOn(url, allowedDomains))
    .filter(({ url }) => excludedDomains === undefined || !isOn(url, excludedDomains))
    .slice(0, maxResults)
    .map((result) => ({ ...result, title: result.title.slice(0, 500), text: result.text.slice(0, maxCharacters) }));
}
