/** Splits a request into several calls, because the service limits the items per call. */
import type { CallPlan, Outgoing, Reply, Step } from './index.ts';

interface Batching<Part> {
  /** Items in the request. */
  count: number;
  /** Most items per call. */
  size: number;
  /** The call for items `from` (inclusive) to `to` (exclusive). */
  call(from: number, to: number): Outgoing;
  /** Reads the results of exactly these items, in order. */
  read(reply: Reply, from: number, to: number): Step<Part[]>;
}

/** Calls one batch after the other. The answer holds the results of all items, in order. */
export function inBatches<Part>(batching: Batching<Part>): CallPlan<Part[]> {
  return batchFrom(batching, 0, []);
}

function batchFrom<Part>(batching: Batching<Part>, from: number, earlier: readonly Part[]): CallPlan<Part[]> {
  const to = Math.min(from + batching.size, batching.count);
  return {
    call: batching.call(from, to),
    share: (to - from) / Math.max(batching.count, 1),
    read(reply) {
      const step = batching.read(reply, from, to);
      if (!('answer' in step)) return step;
      const parts = [...earlier, ...step.answer];
      const { answer: _parts, ...told } = step;
      return to < batching.count ? { ...told, next: batchFrom(batching, to, parts) } : { ...told, answer: parts };
    },
  };
}

/** The same plan with its answer mapped. */
export function mapPlan<From, To>(plan: CallPlan<From>, map: (answer: From) => To): CallPlan<To> {
  const { call, share } = plan;
  return {
    call,
    ...(share !== undefined && { share }),
    read: (reply) => mapStep(plan.read(reply), map),
  };
}

function mapStep<From, To>(step: Step<From>, map: (answer: From) => To): Step<To> {
  if ('answer' in step) return { ...step, answer: map(step.answer) };
  if ('next' in step) return { ...step, next: mapPlan(step.next, map) };
  if ('fetch' in step) return { ...step, withMedia: (media) => mapStep(step.withMedia(media), map) };
  return step;
}
