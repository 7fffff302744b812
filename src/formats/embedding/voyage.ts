/**
 * Voyage (docs.voyageai.com/reference): texts in a dialect of the public format, and parts with images at a separate
 * path.
 */
import { stringifyJson } from '../../base/json.ts';
import { Uncarried } from '../conversation/losses.ts';
import type { EmbeddingAdapter } from './index.ts';
import { type EmbeddingDialect, openaiEmbedding, readReply, usualInputType } from './openai.ts';
import type { EmbeddingInput } from './request.ts';

const INPUT_TYPES: Readonly<Record<string, string>> = { search_query: 'query', search_document: 'document' };

const DIALECT: EmbeddingDialect = {
  maxInputs: 1000,
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
    const body = {
      model: target.model,
      inputs: inputs.map(encodeInput),
      ...(word !== undefined && { input_type: word }),
      ...(request.encoding === 'base64' && { output_encoding: 'base64' }),
    };
    return {
      call: { path: '/multimodalembeddings', body: stringifyJson(body) },
      read: (reply) => readReply(reply, request.count, DIALECT),
    };
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
