/**
 * Voyage (docs.voyageai.com/reference): texts in a dialect of the public format, and parts with images at a separate
 * path.
 */
import { stringifyJson } from '../../base/json.ts';
import { Uncarried } from '../conversation/losses.ts';
import { inBatches, mapPlan } from '../direct/batches.ts';
import type { EmbeddingAdapter } from './index.ts';
import { type EmbeddingDialect, openaiEmbedding, readBatch, usualInputType } from './openai.ts';
import type { EmbeddingInput } from './request.ts';
import type { Vector } from './vectors.ts';

const INPUT_TYPES: Readonly<Record<string, string>> = { search_query: 'query', search_document: 'document' };

/** In one call, of texts as well as of texts with images. */
const MAX_INPUTS = 1000;

const DIALECT: EmbeddingDialect = {
  maxInputs: MAX_INPUTS,
  takesTokens: false,
  takesUser: false,
  dimensionsMember: 'output_dimension',
  inputTypeMember: 'input_type',
  inputTypes: INPUT_TYPES,
};

const texts = openaiEmbedding(DIALECT);

export const voyageEmbedding: EmbeddingAdapter = {
  ...texts,
  start(request, target) {
    const inputs = request.inputs();
    if (inputs[0]?.type !== 'parts') return texts.start(request, target);
    const { dimensions, inputType } = request;
    if (dimensions !== undefined) throw new Uncarried('dimensions', 'multimodal vectors have a fixed size');
    const word = inputType === undefined ? undefined : (INPUT_TYPES[usualInputType(inputType)] ?? inputType);
    const truncation = request.document.member('truncation');
    const encoded = inputs.map(encodeInput);
    const plan = inBatches<Vector>({
      count: request.count,
      size: MAX_INPUTS,
      call: (from, to) => ({
        path: '/multimodalembeddings',
        body: stringifyJson({
          model: target.model,
          inputs: encoded.slice(from, to),
          ...(word !== undefined && { input_type: word }),
          ...(truncation !== undefined && { truncation }),
          ...(request.encoding === 'base64' && { output_encoding: 'base64' }),
        }),
      }),
      read: (reply, from, to) => readBatch(reply, to - from, DIALECT),
    });
    return mapPlan(plan, (vectors) => ({ vectors }));
  },
};

function encodeInput(input: EmbeddingInput): unknown {
  if (input.type !== 'parts') throw new Uncarried('input', 'all inputs must have the same type');
  return {
    content: input.parts.map((part) => {
      if (part.type === 'text') return part;
      if (part.type !== 'image') throw new Uncarried('input', 'the service accepts only text and images');
      return part.url.startsWith('data:')
        ? { type: 'image_base64', image_base64: part.url }
        : { type: 'image_url', image_url: part.url };
    }),
  };
}
