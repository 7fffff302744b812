/** Splits a request into several calls, because the service limits the items per call. */
import type { Course, Outgoing, Reply, Step } from './index.ts';

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
export function inBatches<Part>(batching: Batching<Part>): Course<Part[]> {
  return batchFrom(batching, 0, []);
}

function batchFrom<Part>(batching: Batching<Part>, from: number, earlier: readonly Part[]): Course<Part[]> {
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

/** The same course with its answer mapped. */
export function mapCourse<From, To>(course: Course<From>, map: (answer: From) => To): Course<To> {
  const { call, share } = course;
  return {
    call,
    ...(share !== undefined && { share }),
    read: (reply) => mapStep(course.read(reply), map),
  };
}

function mapStep<From, To>(step: Step<From>, map: (answer: From) => To): Step<To> {
  if ('answer' in step) return { ...step, answer: map(step.answer) };
  if ('next' in step) return { ...step, next: mapCourse(step.next, map) };
  if ('fetch' in step) return { ...step, withMedia: (media) => mapStep(step.withMedia(media), map) };
  return step;
}
