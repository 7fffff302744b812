/** Images of Recraft (recraft.ai/docs/api-reference): raster models, and vector models that generate SVG. */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import { listOf } from '../conversation/fields.ts';
import { readObject } from '../direct/json-reply.ts';
import { answered, fitted, type ImageAbilities, type ImageAdapter, itemOf, passedThrough } from './adapter.ts';

/** Recraft's spelling of some ratios. */
const RATIO_WORDS: Record<string, string> = { '7:5': '14:10', '5:7': '10:14' };

function abilities(model: string): ImageAbilities {
  return {
    n: 6,
    ratios: ['1:1', '1:2', '2:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '5:7', '7:5', '9:16', '16:9'],
    pixels: true,
    ...(/_vector$/.test(model) && { formats: ['svg'] }),
    passthrough: ['style', 'substyle', 'style_id', 'negative_prompt', 'controls', 'text_layout'],
  };
}

export const recraftImages: ImageAdapter = {
  abilities,
  start(request, target) {
    const able = abilities(target.model);
    const { prompt, n, size } = fitted(request, able);
    const { pixels, ratio } = size;
    const body = {
      ...passedThrough(request, target, able),
      model: target.model,
      prompt,
      n,
      response_format: 'b64_json',
      ...(ratio && { size: RATIO_WORDS[ratio] ?? ratio }),
      ...(pixels && { size: `${pixels.width}x${pixels.height}` }),
    };
    return {
      call: { path: '/images/generations', body: stringifyJson(body) },
      read(reply) {
        const object = readObject(reply);
        if ('failure' in object) return object;
        return answered(listOf(object.value['data']).flatMap((item) => itemOf(item) ?? []));
      },
    };
  },
  decodeFailure,
};
