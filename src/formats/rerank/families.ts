/**
 * Adapter for rerank services. All take a query and documents and return indexes with scores. They differ in names, in
 * document types and in usage units, so one adapter with dialects covers them.
 */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import type { Usage } from '../conversation/conversation.ts';
import { withUsage } from '../conversation/failure.ts';
import { countOf, type Fields, fieldsOf, reportedCount, textOrUndefined } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { inBatches, mapPlan } from '../direct/batches.ts';
import { type DirectTarget, inputUsage } from '../direct/index.ts';
import { readObject } from '../direct/json-reply.ts';
import type { RerankAdapter } from './index.ts';
import { type RerankResult, readResults } from './reply.ts';
import type { RerankDocument, RerankRequest } from './request.ts';

export interface RerankDialect {
  /** A function if the path contains the model. Default `/rerank`. */
  path?: string | ((model: string) => string);
  /** Default true: the body contains `model`. */
  namesModel?: boolean;
  /** The service's name for `top_n`. */
  topMember?: 'top_n' | 'top_k';
  /** Members sent with every request. */
  constants?: Fields | ((model: string) => Fields);
  /** Further members of the request that the service knows; all others are left out. */
  members?: readonly string[];
  /** Most documents per call. Scores of one query are comparable across calls. */
  maxDocuments?: number;
  /** How documents with images are encoded; absent: the service ranks only text. */
  images?: 'jina' | 'public';
}

/** Cohere's billing unit: one query with up to this many documents. */
const UNIT_DOCUMENTS = 100;

export function rerankAdapter(dialect: RerankDialect = {}): RerankAdapter {
  return {
    start(request, target) {
      const documents = request.documents().map((document) => encodeDocument(document, dialect));
      const path = typeof dialect.path === 'function' ? dialect.path(target.model) : (dialect.path ?? '/rerank');
      const plan = inBatches<RerankResult>({
        count: request.count,
        size: dialect.maxDocuments ?? request.count,
        call: (from, to) => ({
          path,
          body: stringifyJson(encode(request, documents.slice(from, to), target, dialect)),
        }),
        read: (reply, from, to) => {
          const read = readObject(reply);
          if ('failure' in read) return read;
          const { value } = read;
          const step = readResults(value['results'] ?? value['data'], from, to);
          const told = figures(value);
          if ('failure' in step) return { failure: withUsage(step.failure, told.usage) };
          return { ...step, ...told };
        },
      });
      return mapPlan(plan, (results) => ({ results }));
    },
    decodeFailure,
  };
}

function encode(request: RerankRequest, documents: unknown[], target: DirectTarget, dialect: RerankDialect): Fields {
  return {
    ...(dialect.namesModel !== false && { model: target.model }),
    query: request.query,
    documents,
    [dialect.topMember ?? 'top_n']: Math.min(request.topN, documents.length),
    ...ownMembers(request, dialect),
    ...(typeof dialect.constants === 'function' ? dialect.constants(target.model) : dialect.constants),
  };
}

function ownMembers({ document }: RerankRequest, { members = [] }: RerankDialect): Fields {
  return Object.fromEntries(
    members.filter((name) => name in document.structure).map((name) => [name, document.member(name)]),
  );
}

function encodeDocument({ text, image }: RerankDocument, { images }: RerankDialect): unknown {
  if (image === undefined) return text;
  if (images === undefined) throw new Uncarried('documents', 'the service cannot rank images');
  if (images === 'public') return { ...(text !== undefined && { text }), image };
  if (text !== undefined)
    throw new Uncarried('documents', 'the service accepts a text or an image per document, not both');
  return { image: image.replace(/^data:[^,]*;base64,/, '') };
}

/** Id and usage of the reply: search units (Cohere), tokens (others), or both. */
function figures(value: Fields): { usage?: Usage; upstreamId?: string } {
  const upstreamId = textOrUndefined(value['id']);
  const meta = fieldsOf(value['meta']);
  const billed = fieldsOf(meta['billed_units']);
  const usage = fieldsOf(value['usage']);
  const units = billed['search_units'] ?? usage['search_units'];
  const tokens =
    countOf(usage['total_tokens']) ||
    countOf(usage['prompt_tokens']) ||
    countOf(fieldsOf(meta['tokens'])['input_tokens']);
  const searchUnits = reportedCount(units);
  const told = searchUnits !== undefined || tokens > 0;
  return {
    ...(told && { usage: { ...inputUsage(tokens), ...(searchUnits !== undefined && { searchUnits }) } }),
    ...(upstreamId !== undefined && { upstreamId }),
  };
}

export function unitsFor(documents: number): number {
  return Math.max(1, Math.ceil(documents / UNIT_DOCUMENTS));
}
