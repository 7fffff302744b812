/** The section `routing` of the yaml: how endpoints are tried (docs/guides/routing.md). */
import type { Field, Reader } from './field.ts';
import { duration, list, mapping, textLike } from './readers.ts';

export interface RoutingSettings {
  /**
   * If a stream shows nothing for this long, a second endpoint is called in parallel; null: never. The faster one serves
   * the response, and the cost of the other one so far is charged too.
   */
  hedgeAfterMs: number | null;
  /** How good models are, by their ids; for router models. */
  scores: Readonly<Record<string, ModelScores>>;
}

/** From 0 (the worst) to 1. */
interface ModelScores {
  /** In general. */
  quality?: number;
  coding?: number;
}

export const DEFAULT_ROUTING: RoutingSettings = Object.freeze({ hedgeAfterMs: null, scores: Object.freeze({}) });

export function routing(field: Field): RoutingSettings | undefined {
  const read = mapping(field, { hedge_after: duration, scores: list(scores) });
  return (
    read && {
      hedgeAfterMs: read.hedge_after ?? DEFAULT_ROUTING.hedgeAfterMs,
      scores: Object.fromEntries((read.scores ?? []).map(({ model, ...own }) => [model, own])),
    }
  );
}

function scores(field: Field) {
  const read = mapping(field, { model: modelId, quality: score, coding: score }, ['model']);
  if (read?.model === undefined) return undefined;
  const { model, quality, coding } = read;
  return { model, ...(quality !== undefined && { quality }), ...(coding !== undefined && { coding }) };
}

const modelId: Reader<string> = textLike(/^[^\s/]+\/\S+$/, 'the id of a model, such as acme/large');

function score(field: Field): number | undefined {
  const value = field.scalar()?.value;
  if (value === undefined) return undefined;
  return typeof value === 'number' && value >= 0 && value <= 1 ? value : field.fail('must be a number from 0 to 1');
}
