/**
 * Images of Google: Imagen (`predict`, ai.google.dev/gemini-api/docs/imagen) and Gemini image models
 * (`generateContent`, ai.google.dev/gemini-api/docs/image-generation). Vertex has both under the publisher's name.
 */
import { stringifyJson } from '../../base/json.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../conversation/fields.ts';
import { inputUsage, type Reply, type Step } from '../direct/index.ts';
import { readObject } from '../direct/json-reply.ts';
import { decodeFailure } from '../gemini/failure.ts';
import { decodeUsage } from '../gemini/usage.ts';
import { answered, fitted, type ImageAbilities, type ImageAdapter, passedThrough, piecesOf } from './adapter.ts';
import { filtered, type ImageAnswer } from './reply.ts';

const IMAGEN: ImageAbilities = {
  n: 4,
  ratios: ['1:1', '3:4', '4:3', '9:16', '16:9'],
  formats: ['png', 'jpeg'],
  compression: true,
  passthrough: ['personGeneration', 'safetySetting', 'enhancePrompt', 'language', 'addWatermark'],
};
const DRAWING: ImageAbilities = {
  n: 1,
  ratios: ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'],
  seed: true,
  references: 3,
  passthrough: ['temperature', 'topP', 'safetySettings'],
};

function isImagen(model: string): boolean {
  return /(?:^|\/)imagen/.test(model);
}

function abilities(model: string): ImageAbilities {
  if (isImagen(model)) return /imagen-4\.0-(?!fast)/.test(model) ? { ...IMAGEN, tiers: ['1K', '2K'] } : IMAGEN;
  if (/gemini-2\.[05]/.test(model)) return DRAWING;
  const ratios = [...DRAWING.ratios!, '1:4', '4:1', '1:8', '8:1'];
  return {
    ...DRAWING,
    ratios: /gemini-3-pro/.test(model) ? DRAWING.ratios! : ratios,
    tiers: ['1K', '2K', '4K'],
    references: 14,
  };
}

export const googleImages: ImageAdapter = {
  abilities,
  start(request, target) {
    const able = abilities(target.model);
    const wanted = fitted(request, able);
    const options = passedThrough(request, target, able);
    const { size } = wanted;
    const name = encodeURIComponent(target.model.replace(/^(?:models|google)\//, ''));
    if (isImagen(target.model)) {
      const output = {
        ...(wanted.format && { mimeType: `image/${wanted.format}` }),
        ...(wanted.compression !== undefined && { compressionQuality: wanted.compression }),
      };
      const parameters = {
        ...options,
        sampleCount: wanted.n,
        includeRaiReason: true,
        ...(size.ratio && { aspectRatio: size.ratio }),
        ...(size.tier && { sampleImageSize: size.tier }),
        ...(Object.keys(output).length > 0 && { outputOptions: output }),
      };
      const body = stringifyJson({ instances: [{ prompt: wanted.prompt }], parameters });
      return { call: { path: `/models/${name}:predict`, body }, read: readPredictions };
    }
    const { safetySettings, ...generation } = options;
    const image = { ...(size.ratio && { aspectRatio: size.ratio }), ...(size.tier && { imageSize: size.tier }) };
    const references = wanted.references.map(({ mediaType, data }) => ({ inlineData: { mimeType: mediaType, data } }));
    const body = stringifyJson({
      contents: [{ role: 'user', parts: [...references, { text: wanted.prompt }] }],
      generationConfig: {
        ...generation,
        responseModalities: ['TEXT', 'IMAGE'],
        ...(Object.keys(image).length > 0 && { imageConfig: image }),
        ...(wanted.seed !== undefined && { seed: wanted.seed }),
      },
      ...(safetySettings !== undefined && { safetySettings }),
    });
    return { call: { path: `/models/${name}:generateContent`, body }, read: readContent };
  },
  decodeFailure,
};

function readPredictions(reply: Reply): Step<ImageAnswer> {
  const object = readObject(reply);
  if ('failure' in object) return object;
  const predictions = listOf(object.value['predictions']).map(fieldsOf);
  const items = predictions.flatMap(({ bytesBase64Encoded, mimeType }) =>
    textOf(bytesBase64Encoded) === '' ? [] : [{ data: textOf(bytesBase64Encoded), mediaType: mimeType }],
  );
  // Blocked images are not charged; the others are still returned.
  const reason = predictions.map(({ raiFilteredReason }) => textOf(raiFilteredReason)).find((text) => text !== '');
  if (items.length === 0 && reason !== undefined) return { failure: filtered(reason) };
  return answered(items);
}

const REFUSALS = /SAFETY|PROHIBITED|RECITATION|BLOCKLIST|SPII/;

function readContent(reply: Reply): Step<ImageAnswer> {
  const object = readObject(reply);
  if ('failure' in object) return object;
  const { value } = object;
  const [candidate] = listOf(value['candidates']).map(fieldsOf);
  const parts = listOf(fieldsOf(candidate?.['content'])['parts']).map(fieldsOf);
  const items = parts.filter(({ thought }) => thought !== true).flatMap(imageOf);
  const blocked = textOf(fieldsOf(value['promptFeedback'])['blockReason']);
  const finish = textOf(candidate?.['finishReason']);
  if (items.length === 0 && (blocked !== '' || REFUSALS.test(finish))) {
    return { failure: filtered(textOf(candidate?.['finishMessage']) || `the service refused: ${blocked || finish}`) };
  }
  const upstreamId = textOf(value['responseId']);
  return answered(items, {
    usage: (images) => ({ ...(decodeUsage(value['usageMetadata']) ?? inputUsage(0)), ...piecesOf(images) }),
    ...(upstreamId !== '' && { upstreamId }),
  });
}

function imageOf(part: Fields): { data: string; mediaType?: unknown }[] {
  const { data, mimeType } = fieldsOf(part['inlineData'] ?? part['inline_data']);
  return textOf(data) === '' ? [] : [{ data: textOf(data), mediaType: mimeType }];
}
