/**
 * Searching the web. `createWebSearch` makes it from the installation's engines; `settings.ts` reads what requests say.
 * Used by the server tool `svc:web_search` and the plugin `web`. Not here: what models and clients see of the results.
 */
export type { SearchQuery, SearchResult } from './engine.ts';
export { citationsIn, textFor } from './shown.ts';
export { type ChosenEngine, createWebSearch, SearchError, type WebSearch } from './web-search.ts';
