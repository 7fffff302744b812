/**
 * Google's embeddings: `batchEmbedContents` of the Gemini API (ai.google.dev/api/embeddings) and `predict` of Vertex
 * (docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api).
 */
import { stringifyJson } from '../../base/json.ts';
import type { Usage } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, listOf, reportedCount, textOf } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { inBatches, mapPlan } from '../direct/batches.ts';
import { inputUsage, type Reply, type Step } from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import { decodeFailure } from '../gemini/failure.ts';
import type { EmbeddingAdapter } from './index.ts';
import { plainText, usualInputType, wrongCount } from './openai.ts';
import type { EmbeddingInput, EmbeddingRequest, InputPart } from './request.ts';
import { numbersOf, type Vector } from './vectors.ts';

/** Google's names for input types. Others are sent in upper case, as Google spells them. */
const TASKS: Readonly<Record<string, string>> = {
  search_query: 'RETRIEVAL_QUERY',
  search_document: 'RETRIEVAL_DOCUMENT',
  similarity: 'SEMANTIC_SIMILARITY',
  'text-matching': 'SEMANTIC_SIMILARITY',
};

const MAX_GEMINI_INPUTS = 100;
const MAX_VERTEX_INPUTS = 250;
/** Models that accept one input per call. */
const ONE_AT_A_TIME = /^gemini-embedding/;

export const geminiEmbedding: EmbeddingAdapter = {
  start(request, { model }) {
    const name = `models/${model}`;
    const settings = {
      ...(request.inputType !== undefined && { taskType: taskOf(request.inputType) }),
      ...(request.dimensions !== undefined && { outputDimensionality: request.dimensions }),
    };
    const requests = request
      .inputs()
      .map((input) => ({ model: name, content: { parts: encodeParts(input) }, ...settings }));
    const plan = inBatches<Vector>({
      count: request.count,
      size: MAX_GEMINI_INPUTS,
      call: (from, to) => ({
        path: `/models/${encodeURIComponent(model)}:batchEmbedContents`,
        body: stringifyJson({ requests: requests.slice(from, to) }),
      }),
      read: readGemini,
    });
    return mapPlan(plan, (vectors) => ({ vectors }));
  },
  decodeFailure,
};

export const vertexEmbedding: EmbeddingAdapter = {
  start(request, target) {
    const model = target.model.replace(/^google\//, '');
    const instances = encodeInstances(request);
    const parameters = {
      autoTruncate: false,
      ...(request.dimensions !== undefined && { outputDimensionality: request.dimensions }),
    };
    const plan = inBatches<Vector>({
      count: request.count,
      size: ONE_AT_A_TIME.test(model) ? 1 : MAX_VERTEX_INPUTS,
      call: (from, to) => ({
        path: `/publishers/google/models/${encodeURIComponent(model)}:predict`,
        body: stringifyJson({ instances: instances.slice(from, to), parameters }),
      }),
      read: readVertex,
    });
    return mapPlan(plan, (vectors) => ({ vectors }));
  },
  decodeFailure,
};

function taskOf(inputType: string): string {
  const usual = usualInputType(inputType);
  return TASKS[usual] ?? usual.toUpperCase();
}

function encodeParts(input: EmbeddingInput): Fields[] {
  if (input.type === 'tokens') throw new Uncarried('input', 'the service does not accept token ids');
  return input.type === 'text' ? [{ text: input.text }] : input.parts.map(encodePart);
}

const DATA_URL = /^data:([^;,]+)(?:;[^,;]*)*;base64,/;
const MEDIA_TYPES: Readonly<Record<string, string>> = { mp3: 'audio/mpeg', wav: 'audio/wav', pdf: 'application/pdf' };

function encodePart(part: InputPart): Fields {
  if (part.type === 'text') return { text: part.text };
  const content = part.type === 'image' ? part.url : part.data;
  const match = DATA_URL.exec(content);
  if (match !== null) return { inlineData: { mimeType: match[1], data: content.slice(match[0].length) } };
  const format = part.type === 'image' ? undefined : part.format;
  if (format === undefined || /^https?:/.test(content)) {
    throw new Uncarried('input', 'the service accepts media only as data URLs');
  }
  const mimeType = MEDIA_TYPES[format] ?? (format.includes('/') ? format : `${part.type}/${format}`);
  return { inlineData: { mimeType, data: content } };
}

function encodeInstances({ inputs, inputType }: EmbeddingRequest): Fields[] {
  return inputs().map((input) => {
    const content = plainText(input);
    if (content === undefined) throw new Uncarried('input', 'the service accepts only text');
    return { content, ...(inputType !== undefined && { task_type: taskOf(inputType) }) };
  });
}

function readGemini(reply: Reply, from: number, to: number): Step<Vector[]> {
  const read = readObject(reply);
  if ('failure' in read) return read;
  const { embedding, embeddings, predictions } = read.value;
  // `embedContent` and gateways to Vertex have their own reply shapes.
  if (predictions !== undefined) return readVertex(reply, from, to);
  const items = embeddings === undefined && embedding !== undefined ? [embedding] : listOf(embeddings);
  const step = vectorsOf(
    items.map((item) => fieldsOf(item)['values']),
    to - from,
  );
  const { promptTokenCount, promptTokenDetails, promptTokensDetails } = fieldsOf(read.value['usageMetadata']);
  const tokens = reportedCount(promptTokenCount);
  if ('failure' in step || tokens === undefined) return step;
  return { ...step, usage: usageOf(tokens, listOf(promptTokensDetails ?? promptTokenDetails)) };
}

function usageOf(tokens: number, details: readonly unknown[]): Usage {
  const count = (modality: string) =>
    details.reduce<number>((sum, item) => {
      const { modality: own, tokenCount } = fieldsOf(item);
      return textOf(own) === modality ? sum + countOf(tokenCount) : sum;
    }, 0);
  const image = count('IMAGE');
  const audio = count('AUDIO');
  return { ...inputUsage(tokens), ...(image > 0 && { inputImage: image }), ...(audio > 0 && { inputAudio: audio }) };
}

function readVertex(reply: Reply, from: number, to: number): Step<Vector[]> {
  const read = readObject(reply);
  if ('failure' in read) return read;
  const items = listOf(read.value['predictions']).map((item) => fieldsOf(fieldsOf(item)['embeddings']));
  const step = vectorsOf(
    items.map(({ values }) => values),
    to - from,
  );
  if ('failure' in step) return step;
  const counts = items.map(({ statistics }) => reportedCount(fieldsOf(statistics)['token_count']));
  if (!counts.every((count) => count !== undefined)) return step;
  return { ...step, usage: inputUsage(counts.reduce((sum, count) => sum + count, 0)) };
}

function vectorsOf(values: readonly unknown[], count: number): Step<Vector[]> {
  if (values.length !== count) return { failure: wrongCount(values.length, count) };
  try {
    return { answer: values.map(numbersOf) };
  } catch {
    return { failure: malformed('values that are not vectors') };
  }
}
