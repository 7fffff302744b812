/**
 * Live statistics of endpoints: latency, throughput, uptime and the validity of tool calls, from real traffic, over all
 * processes of the installation and alive after a restart (wire/models.md, PublicEndpoint).
 *
 * One call: `record` writes it into a ring (`ring.ts`); once a second the ring is folded into slices of time
 * (`slices.ts`), whose percentiles are sketches (`sketch.ts`); every ten seconds the slices go into PostgreSQL and those
 * of the other processes come from there (`store.ts`). `of` answers from memory.
 *
 * Not here: which endpoint a request gets (`inference/routing`), and what rests after a failure.
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
