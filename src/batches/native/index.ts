/**
 * Native batches: batches that run in the batch interface of a provider, at its batch price. `plan.ts` assigns items to them,
 * `follow.ts` takes each through its life at the provider, `read.ts` reads its results. The interfaces themselves are in
 * `providers/batches/`.
 */
export { type NativeJobs, nativeJobs } from './jobs.ts';
export { insertPlan } from './parts.sql.ts';
export { mayRunNatively, type NativeParts, planNative } from './plan.ts';
