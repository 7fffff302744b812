/**
 * Embeddings on Bedrock, by `invoke` in the model's own format: Titan with one input per call
 * (docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html), Cohere as on its own service.
 */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import { type Fields, reportedCount } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { inBatches, mapPlan } from '../direct/batches.ts';
import { inputUsage, type Outgoing, type Reply, type Step } from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import { cohereEmbedding } from './cohere.ts';
import type { EmbeddingAdapter } from './index.ts';
import { plainText } from './openai.ts';
import type { EmbeddingInput, EmbeddingRequest } from './request.ts';
import { numbersOf, type Vector } from './vectors.ts';

function invoke(model: string, body: Fields): Outgoing {
  return { path: `/model/${encodeURIComponent(model)}/invoke`, body: stringifyJson(body) };
}

const cohere = cohereEmbedding({ call: invoke });

export const bedrockEmbedding: EmbeddingAdapter = {
  start(request, target) {
    const { model } = target;
    if (/\bcohere\./.test(model)) return cohere.start(request, target);
    const bodies = request.inputs().map((input) => encodeTitan(input, request, model));
    const plan = inBatches<Vector>({
      count: request.count,
      size: 1,
      call: (from) => invoke(model, bodies[from]!),
      read: readTitan,
    });
    return mapPlan(plan, (vectors) => ({ vectors }));
  },
  decodeFailure,
};

function encodeTitan(input: EmbeddingInput, { dimensions }: EmbeddingRequest, model: string): Fields {
  if (/titan-embed-image/.test(model)) {
    return { ...imageAndText(input), ...(dimensions && { embeddingConfig: { outputEmbeddingLength: dimensions } }) };
  }
  const text = plainText(input);
  if (text === undefined) throw new Uncarried('input', 'the model accepts only text');
  if (dimensions !== undefined && /titan-embed-(g1-)?text(-v1|-01)/.test(model)) {
    throw new Uncarried('dimensions', 'the model has a fixed vector size');
  }
  return { inputText: text, ...(dimensions !== undefined && { dimensions }) };
}

function imageAndText(input: EmbeddingInput): Fields {
  if (input.type === 'text') return { inputText: input.text };
  if (input.type === 'tokens') throw new Uncarried('input', 'the model does not accept token ids');
  const body: Fields = {};
  for (const part of input.parts) {
    const key = part.type === 'text' ? 'inputText' : 'inputImage';
    if (key in body) throw new Uncarried('input', 'the model accepts one text and one image per input');
    if (part.type === 'text') body[key] = part.text;
    else if (part.type === 'image' && part.url.startsWith('data:')) body[key] = part.url.replace(/^[^,]*,/, '');
    else throw new Uncarried('input', 'the model accepts only text and images as data URLs');
  }
  return body;
}

function readTitan(reply: Reply): Step<Vector[]> {
  const read = readObject(reply);
  if ('failure' in read) return read;
  const { embedding, inputTextTokenCount } = read.value;
  try {
    const answer = [numbersOf(embedding)];
    const tokens = reportedCount(inputTextTokenCount);
    return tokens === undefined ? { answer } : { answer, usage: inputUsage(tokens) };
  } catch {
    return { failure: malformed('a value that is not a vector') };
  }
}
