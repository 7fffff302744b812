/**
 * Durable background work, on pg-boss. A folder that has such work describes it as a `JobKind` and gives it to `Jobs`;
 * any process of the installation runs it, and another one takes over within 15 s when that process dies
 * (with `pollSeconds: 1`).
 *
 * A job is a wake-up call, not the truth: its handler reads what is to be done from the tables of its own folder, so that
 * a job that runs twice, or was lost with a restored database, does no harm.
 *
 * Not here: work for each request (`inference/`), and regular work of a single process (a timer of `base/clock.ts`).
 */
export { installJobs } from './install.ts';
export {
  createJobs,
  type Job,
  type JobKind,
  type Jobs,
  type JobsOptions,
  type SendOptions,
  type StartOfJobs,
} from './jobs.ts';
