/** The facts that are newer than the package: how they come (`refresh.ts`) and where they stand (`data-file.ts`). */

export { FetchError } from './collect.ts';
export { CATALOG_HELP, type CatalogCommandParts, runCatalogCommand } from './command.ts';
export { loadFacts } from './data-file.ts';
export { type Refreshed, type RefreshOptions, refreshCatalog } from './refresh.ts';
