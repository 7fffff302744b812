/** The section `routing` of the yaml: how endpoints are tried (docs/guides/routing.md). */
import type { Field } from './field.ts';
import { duration, mapping } from './readers.ts';

export interface RoutingSettings {
  /**
   * Silence of a stream's beginning after which a second endpoint is asked beside the first; null: never. The faster one
   * answers, and what the other has cost by then is charged as well.
   */
  hedgeAfterMs: number | null;
}

export const DEFAULT_ROUTING: RoutingSettings = Object.freeze({ hedgeAfterMs: null });

export function routing(field: Field): RoutingSettings | undefined {
  const read = mapping(field, { hedge_after: duration });
  return read && { hedgeAfterMs: read.hedge_after ?? DEFAULT_ROUTING.hedgeAfterMs };
}
