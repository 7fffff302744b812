/** The section `routing` of the yaml: how endpoints are tried (docs/guides/routing.md). */
import type { Field } from './field.ts';
import { duration, mapping } from './readers.ts';

export interface RoutingSettings {
  /**
   * If a stream shows nothing for this long, a second endpoint is called in parallel; null: never. The faster one serves
   * the response, and the cost of the other one so far is charged too.
   */
  hedgeAfterMs: number | null;
}

export const DEFAULT_ROUTING: RoutingSettings = Object.freeze({ hedgeAfterMs: null });

export function routing(field: Field): RoutingSettings | undefined {
  const read = mapping(field, { hedge_after: duration });
  return read && { hedgeAfterMs: read.hedge_after ?? DEFAULT_ROUTING.hedgeAfterMs };
}
