/** Reads large bodies in steps of the event loop: streams are not held up for longer than a step takes. */
import type { JsonDocument } from '../base/json.ts';
import { DocumentReader } from '../base/json-pieces.ts';

export interface Reading {
  readonly closed: boolean;
  documentRead(document: JsonDocument): void;
  fail(thrown: unknown): void;
}

/** Throws what is wrong with the first part; what is found later goes to `fail`. */
export function readInSteps(bytes: Buffer, limits: { maxDepth: number }, reading: Reading): void {
  const reader = new DocumentReader(bytes, limits);
  const step = (): void => {
    if (reading.closed) return;
    try {
      const document = reader.step();
      if (document === undefined) setImmediate(step);
      else reading.documentRead(document);
    } catch (error) {
      reading.fail(error);
    }
  };
  step();
}
