/**
 * Live endpoint statistics: latency, throughput, uptime and validity of tool calls, measured on real traffic over all
 * processes of the installation. They survive restarts.
 *
 * Data flow: `record` writes a call into a ring (`ring.ts`). Once a second the ring is folded into time slices
 * (`slices.ts`), whose percentiles are sketches (`sketch.ts`). Every ten seconds slices are written to PostgreSQL and
 * those of other processes are read (`store.ts`). `of` reads from memory.
 *
 * Not here: which endpoint a request gets, and cooldowns (`inference/routing`).
 */
export {
  type EndpointFigures,
  type EndpointStatistics,
  type Measured,
  NO_FIGURES,
  type Percentiles,
} from './figures.ts';
export { statisticsMigrations } from './migrations/index.ts';
export { createStatistics, type Statistics } from './statistics.ts';
