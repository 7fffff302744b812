/** The section `routing` of the yaml: how endpoints are tried (docs/guides/routing.md). */
import type { Field, Reader } from './field.ts';
import { type Meaning, section } from './meaning.ts';
import { distinct, duration, list, mapping, textLike } from './readers.ts';

export interface RoutingSettings {
  /**
   * If a stream shows nothing for this long, a second endpoint is called in parallel; null: never. The faster one serves
   * the response, and the cost of the other one so far is charged too.
   */
  hedgeAfterMs: number | null;
  /** How good models are, by their ids; for router models. */
  scores: Readonly<Record<string, ModelScores>>;
  /** Further models by the id of a model, for requests that name none; `*`: for models without an entry. */
  fallbacks: ReadonlyMap<string, readonly string[]>;
}

/** The further models of a model. */
export function fallbacksOf({ fallbacks }: RoutingSettings, modelId: string): readonly string[] {
  return fallbacks.get(modelId) ?? fallbacks.get('*') ?? [];
}

/** From 0 (the worst) to 1. */
interface ModelScores {
  /** In general. */
  quality?: number;
  coding?: number;
}

export const DEFAULT_ROUTING: RoutingSettings = Object.freeze({
  hedgeAfterMs: null,
  scores: Object.freeze({}),
  fallbacks: Object.freeze(new Map()),
});

export function routing(field: Field): RoutingSettings | undefined {
  const read = mapping(field, { hedge_after: duration, scores: list(scores), fallbacks });
  return (
    read && {
      hedgeAfterMs: read.hedge_after ?? DEFAULT_ROUTING.hedgeAfterMs,
      scores: Object.fromEntries((read.scores ?? []).map(({ model, ...own }) => [model, own])),
      fallbacks: read.fallbacks ?? DEFAULT_ROUTING.fallbacks,
    }
  );
}

function scores(field: Field) {
  const read = mapping(field, { model: modelId, quality: score, coding: score }, ['model']);
  if (read?.model === undefined) return undefined;
  const { model, quality, coding } = read;
  return { model, ...(quality !== undefined && { quality }), ...(coding !== undefined && { coding }) };
}

const MODEL_ID = /^[^\s/]+\/\S+$/;
const modelId: Reader<string> = textLike(MODEL_ID, 'the id of a model, such as acme/large');

function fallbacks(field: Field): ReadonlyMap<string, readonly string[]> | undefined {
  const members = field.membersOfAnyName();
  if (members === undefined) return undefined;
  const read = new Map<string, readonly string[]>();
  for (const [model, member] of members) {
    const further = distinct(modelId)(member);
    if (model !== '*' && !MODEL_ID.test(model)) {
      member.fail('must be under the id of a model, such as acme/large, or under *');
    } else if (further !== undefined) read.set(model, further);
  }
  return read;
}

function score(field: Field): number | undefined {
  const value = field.scalar()?.value;
  if (value === undefined) return undefined;
  return typeof value === 'number' && value >= 0 && value <= 1 ? value : field.fail('must be a number from 0 to 1');
}

export const ROUTING_MEANINGS: Readonly<Record<string, Meaning>> = {
  ...section('routing', 'How endpoints are tried ([routing](../guides/routing.md)).', {
    hedge_after: [
      'If a stream has not started after this time, ask a second endpoint in parallel; the faster one answers. Both are charged. Without it requests are never hedged.',
    ],
  }),
  ...section('routing.fallbacks', 'Models to try after a model, for requests that name no fallback models.', {
    '<name>': [
      'Ids of the further models, in order. The name is the id of a model, or `*` for every model without an entry.',
    ],
  }),
  ...section('routing.scores', 'How good models are, for [router models](../guides/plugins.md#router-models).', {}),
  ...section('routing.scores[]', 'The scores of one model.', {
    model: ['Id of the model.'],
    quality: ['How good it is in general, from 0 to 1.'],
    coding: ['How well it writes code, from 0 to 1.'],
  }),
};
