/**
 * Cohere's embed, version 2 (docs.cohere.com/reference/embed), also by `invoke` on Bedrock. A call holds 96 inputs.
 * Images need a model of version 3 or later, and version 3 accepts only one image per call.
 */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../cohere/failure.ts';
import type { Usage } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, listOf, reportedCount, textOrUndefined } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { inBatches, mapPlan } from '../direct/batches.ts';
import { inputUsage, type Outgoing, type Reply, type Step } from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import type { EmbeddingAdapter } from './index.ts';
import { plainText, usualInputType, wrongCount } from './openai.ts';
import type { EmbeddingInput, EmbeddingRequest } from './request.ts';
import { numbersOf, type Vector } from './vectors.ts';

const MAX_INPUTS = 96;
/** Required by every model since version 3. */
const DEFAULT_INPUT_TYPE = 'search_document';

interface CohereAddress {
  /** Builds the path and body of a call; `body` has no model yet. */
  call(model: string, body: Fields): Outgoing;
}

const OWN_ADDRESS: CohereAddress = {
  call: (model, body) => ({ path: '/embed', body: stringifyJson({ model, ...body }) }),
};

export function cohereEmbedding({ call }: CohereAddress = OWN_ADDRESS): EmbeddingAdapter {
  return {
    start(request, target) {
      const settings = encodeSettings(request, target.model);
      const inputs = request.inputs();
      const texts = inputs.map(plainText);
      const mixed = texts.includes(undefined);
      const plan = inBatches<Vector>({
        count: request.count,
        size: MAX_INPUTS,
        call: (from, to) => {
          const batch = mixed ? { inputs: inputs.slice(from, to).map(encodeParts) } : { texts: texts.slice(from, to) };
          return call(target.model, { ...batch, ...settings });
        },
        read: readReply,
      });
      return mapPlan(plan, (vectors) => ({ vectors }));
    },
    decodeFailure,
  };
}

function encodeSettings({ document, dimensions, inputType }: EmbeddingRequest, model: string): Fields {
  const truncate = document.member('truncate');
  if (dimensions !== undefined && /v[123]\b|-v3/.test(model)) {
    throw new Uncarried('dimensions', 'models before version 4 have a fixed vector size');
  }
  return {
    input_type: inputType === undefined ? DEFAULT_INPUT_TYPE : usualInputType(inputType),
    embedding_types: ['float'],
    ...(dimensions !== undefined && { output_dimension: dimensions }),
    ...(truncate !== undefined && { truncate }),
  };
}

function encodeParts(input: EmbeddingInput): Fields {
  if (input.type === 'tokens') throw new Uncarried('input', 'the service does not accept token ids');
  if (input.type === 'text') return { content: [{ type: 'text', text: input.text }] };
  return {
    content: input.parts.map((part) => {
      if (part.type === 'text') return part;
      if (part.type !== 'image') throw new Uncarried('input', 'the service accepts only text and images');
      if (!part.url.startsWith('data:')) throw new Uncarried('input', 'the service accepts images only as data URLs');
      return { type: 'image_url', image_url: { url: part.url } };
    }),
  };
}

/** `embeddings` is a list of vectors in version 1 replies, else an object with a list per type. */
function readReply(reply: Reply, from: number, to: number): Step<Vector[]> {
  const read = readObject(reply);
  if ('failure' in read) return read;
  const { embeddings, id, meta } = read.value;
  const list = listOf(Array.isArray(embeddings) ? embeddings : ofOneType(fieldsOf(embeddings)));
  if (list.length !== to - from) return { failure: wrongCount(list.length, to - from) };
  let vectors: Vector[];
  try {
    vectors = list.map(numbersOf);
  } catch {
    return { failure: malformed('values that are not vectors') };
  }
  const usage = usageOf(fieldsOf(meta), reply);
  const upstreamId = textOrUndefined(id);
  return { answer: vectors, ...(usage && { usage }), ...(upstreamId !== undefined && { upstreamId }) };
}

/** Requested as float, but an intermediary may have chosen another type. */
function ofOneType(embeddings: Fields): unknown {
  return embeddings['float'] ?? Object.values(embeddings).find((list) => Array.isArray(list) && Array.isArray(list[0]));
}

function usageOf(meta: Fields, { headers }: Reply): Usage | undefined {
  const { input_tokens, image_tokens } = fieldsOf(meta['billed_units']);
  const [text, image] = [reportedCount(input_tokens), reportedCount(image_tokens)];
  if (text !== undefined || image !== undefined) {
    return { ...inputUsage((text ?? 0) + (image ?? 0)), ...(image && { inputImage: image }) };
  }
  const counted = Number(headers['x-amzn-bedrock-input-token-count']);
  return counted > 0 ? inputUsage(counted) : undefined;
}
