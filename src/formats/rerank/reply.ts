/** Encodes the reply of `POST /rerank`, and reads the results of upstreams. */
import Type from 'typebox';
import { stringifyJson } from '../../base/json.ts';
import type { Usage } from '../conversation/conversation.ts';
import { fieldsOf, listOf } from '../conversation/fields.ts';
import { type Closing, costMembers, type Stamp } from '../conversation/format.ts';
import type { Step } from '../direct/index.ts';
import { malformed } from '../direct/json-reply.ts';
import type { RerankRequest } from './request.ts';

export interface RerankResult {
  /** Index into the client's list of documents. */
  index: number;
  score: number;
}

/** In any order. */
export interface RerankAnswer {
  results: readonly RerankResult[];
}

export function encodeReply(
  { results }: RerankAnswer,
  request: RerankRequest,
  stamp: Stamp,
  { usage, cost, metadata }: Closing,
): string {
  const documents = request.documents();
  const ranked = results.toSorted((a, b) => b.score - a.score || a.index - b.index).slice(0, request.topN);
  return stringifyJson({
    id: stamp.id,
    model: stamp.model,
    provider: stamp.provider,
    results: ranked.map(({ index, score }) => ({ index, relevance_score: score, document: documents[index] })),
    ...(usage !== undefined && { usage: { ...usageView(usage), ...costMembers(cost) } }),
    ...(metadata !== undefined && { [metadata.key]: metadata.value }),
  });
}

function usageView({ input, searchUnits }: Usage): Record<string, unknown> {
  return { ...(searchUnits !== undefined && { search_units: searchUnits }), ...(input > 0 && { total_tokens: input }) };
}

/**
 * The upstream's results for documents `from` to `to` of the client's list: `[{index, relevance_score}]`, with any of
 * the usual names for the score. An index that is out of range or repeated is malformed.
 */
export function readResults(value: unknown, from: number, to: number): Step<RerankResult[]> {
  const seen = new Set<number>();
  const results: RerankResult[] = [];
  for (const item of listOf(value)) {
    const { index, relevance_score, relevanceScore, score } = fieldsOf(item);
    const told = relevance_score ?? relevanceScore ?? score;
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= to - from) {
      return { failure: malformed('a result for an unknown document') };
    }
    if (seen.has(index as number)) return { failure: malformed('two results for one document') };
    if (typeof told !== 'number' || !Number.isFinite(told)) return { failure: malformed('a result without a score') };
    seen.add(index as number);
    results.push({ index: from + (index as number), score: told });
  }
  if (results.length === 0) return { failure: { ...malformed('no results'), kind: 'empty' } };
  return { answer: results };
}

const Count = Type.Integer({ minimum: 0 });

/** For the OpenAPI document. */
export const RerankReply = Type.Object(
  {
    id: Type.String({ description: '`gen-...`' }),
    model: Type.String(),
    provider: Type.String(),
    results: Type.Array(
      Type.Object({
        index: Type.Integer({ minimum: 0, description: 'Position of the document in the request' }),
        relevance_score: Type.Number(),
        document: Type.Object({ text: Type.Optional(Type.String()), image: Type.Optional(Type.String()) }),
      }),
      { description: 'The most relevant first' },
    ),
    usage: Type.Object(
      {
        search_units: Type.Optional(Count),
        total_tokens: Type.Optional(Count),
        cost: Type.Optional(Type.Number({ description: 'Absent when the model has no price' })),
      },
      { additionalProperties: true },
    ),
  },
  { additionalProperties: true, $id: 'Rerank' },
);
