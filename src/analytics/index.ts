/**
 * Analytics: ad hoc questions about what was asked of models, by the hour, the model, the key and more
 * (wire/analytics.md). It reads the rows of `spend` as they are and keeps nothing of its own. Not here: the sums of
 * `GET /activity` (`observability`), and figures of this process (`GET /metrics`).
 */
export { DIMENSIONS, METRICS } from './names.ts';
export { type AnalyticsParts, analyticsOperations } from './operations.ts';
