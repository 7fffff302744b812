/**
 * The catalog: models, the endpoints that serve them, and their prices. In memory, built from the configuration. Not
 * here: how to reach a provider (`providers/`), and which endpoint a request gets (`inference/routing`).
 */

export { atBatchPrice } from './batch-price.ts';
export { isNamed } from './called-models.ts';
export {
  buildCatalog,
  type Catalog,
  type Endpoint,
  type EndpointTier,
  type Model,
  type RoutingVariant,
} from './catalog.ts';
export type { Facts, ModelFacts } from './facts.ts';
export { catalogOperations } from './operations.ts';
export { type Ceiling, type CostBreakdown, ceilingOf, costsNothing, type PricingOf, priceOf } from './pricing.ts';
export { CATALOG_HELP, type CatalogCommandParts, loadFacts, runCatalogCommand } from './refresh/index.ts';
export type { ListedRouter } from './routers.ts';
export { SHIPPED_FACTS } from './snapshot/index.ts';
export {
  createStatistics,
  type EndpointFigures,
  type EndpointStatistics,
  type Measured,
  NO_FIGURES,
  type Percentiles,
  type Statistics,
  statisticsMigrations,
} from './statistics/index.ts';
export { viewModel } from './view.ts';
