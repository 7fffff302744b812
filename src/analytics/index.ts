/**
 * Analytics: ad hoc queries over generations, by time, model, key and more, and the list of single ones (`requests/`). It reads
 * the rows of `spend` and their totals (`sources.sql.ts`), and stores nothing. Not here: the totals of `GET /activity`
 * (`observability`), and metrics of this process (`GET /metrics`).
 */

export { datasetOperations } from './datasets/operations.ts';
export { DIMENSIONS, METRICS } from './names.ts';
export { analyticsOperations } from './operations.ts';
export type { AnalyticsParts } from './parts.ts';
