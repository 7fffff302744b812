/** `ranking_options` of searches. */
import { invalidField } from '../base/errors.ts';
import { DEFAULT_WEIGHTS, type Weights } from './search.ts';

export interface Ranking {
  threshold: number;
  weights: Weights;
}

const RANKERS = ['auto', 'default-2024-11-15', 'none'];
const MEMBERS = ['ranker', 'score_threshold', 'hybrid_search'];

/** @param value absent or null: the default @throws GatewayError 400 */
export function readRanking(value: unknown, path: string): Ranking {
  const { ranker, score_threshold: threshold = 0, hybrid_search: hybrid } = membersOf(value, path, MEMBERS);
  if (ranker !== undefined && !RANKERS.includes(ranker as string)) {
    throw invalidField(`${path}.ranker`, `must be one of ${RANKERS.join(', ')}`);
  }
  return {
    threshold: numberOf(threshold, `${path}.score_threshold`, 1),
    weights: hybrid === undefined ? DEFAULT_WEIGHTS : readWeights(hybrid, `${path}.hybrid_search`),
  };
}

function readWeights(value: unknown, path: string): Weights {
  const members = membersOf(value, path, ['embedding_weight', 'text_weight']);
  const { embedding_weight: embedding = 0, text_weight: text = 0 } = members;
  const weights = {
    embedding: numberOf(embedding, `${path}.embedding_weight`, 1000),
    text: numberOf(text, `${path}.text_weight`, 1000),
  };
  if (weights.embedding + weights.text === 0) throw invalidField(path, 'must have a weight above 0');
  return weights;
}

function numberOf(value: unknown, path: string, most: number): number {
  if (typeof value === 'number' && value >= 0 && value <= most) return value;
  throw invalidField(path, `must be a number from 0 to ${most}`);
}

/** Members that are null are left out. */
function membersOf(value: unknown, path: string, known: readonly string[]): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw invalidField(path, 'must be an object');
  const members = Object.entries(value).filter(([, member]) => member !== null);
  for (const [name] of members) {
    if (!known.includes(name)) throw invalidField(`${path}.${name}`, 'is not known');
  }
  return Object.fromEntries(members);
}
