/**
 * How services are asked to rank. All take a query and a list of documents and answer with positions and scores; they
 * differ in names, in what a document may be and in what they count, so one adapter with a dialect has them all.
 */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import type { Usage } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, isImpossibleCount, textOrUndefined } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { inBatches, mapCourse } from '../single/batches.ts';
import { inputUsage, type SingleTarget } from '../single/index.ts';
import { readObject } from '../single/json-reply.ts';
import type { RerankAdapter } from './index.ts';
import { type RerankResult, readResults } from './reply.ts';
import type { RerankDocument, RerankRequest } from './request.ts';

export interface RerankDialect {
  /** A function where it names the model. Default `/rerank`. */
  path?: string | ((model: string) => string);
  /** Default true: `model` stands in the body. */
  namesModel?: boolean;
  /** What the service calls `top_n`. */
  topMember?: 'top_n' | 'top_k';
  /** Members that go along with every request. */
  constants?: Fields | ((model: string) => Fields);
  /** The most documents of one call. Scores of one query can be compared over calls. */
  maxDocuments?: number;
  /** How a document with an image is written; absent: the service ranks texts only. */
  images?: 'jina' | 'public';
}

/** A search unit is one query with up to this many documents (Cohere's way to charge). */
const UNIT_DOCUMENTS = 100;

export function rerankAdapter(dialect: RerankDialect = {}): RerankAdapter {
  return {
    start(request, target) {
      const documents = request.documents().map((document) => encodeDocument(document, dialect));
      const path = typeof dialect.path === 'function' ? dialect.path(target.model) : (dialect.path ?? '/rerank');
      const course = inBatches<RerankResult>({
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
          return 'answer' in step ? { ...step, ...figures(value) } : step;
        },
      });
      return mapCourse(course, (results) => ({ results }));
    },
    decodeFailure,
  };
}

function encode(request: RerankRequest, documents: unknown[], target: SingleTarget, dialect: RerankDialect): Fields {
  return {
    ...(dialect.namesModel !== false && { model: target.model }),
    query: request.query,
    documents,
    [dialect.topMember ?? 'top_n']: Math.min(request.topN, documents.length),
    ...(typeof dialect.constants === 'function' ? dialect.constants(target.model) : dialect.constants),
  };
}

function encodeDocument({ text, image }: RerankDocument, { images }: RerankDialect): unknown {
  if (image === undefined) return text;
  if (images === undefined) throw new Uncarried('documents', 'the service ranks texts, no images');
  if (images === 'public') return { ...(text !== undefined && { text }), image };
  if (text !== undefined) throw new Uncarried('documents', 'the service takes a text or an image a document, not both');
  return { image: image.replace(/^data:[^,]*;base64,/, '') };
}

/** What the reply says it is and counts: search units (Cohere), tokens (the others), or both. */
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
  const counted = typeof units === 'number' && !isImpossibleCount(units);
  const told = counted || tokens > 0;
  return {
    ...(told && {
      usage: { ...inputUsage(tokens), ...(counted && { searchUnits: countOf(units) }) },
    }),
    ...(upstreamId !== undefined && { upstreamId }),
  };
}

export function unitsFor(documents: number): number {
  return Math.max(1, Math.ceil(documents / UNIT_DOCUMENTS));
}
