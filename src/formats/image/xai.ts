/** Images of xAI (docs.x.ai/docs/guides/image-generations): Grok Imagine. Edits are JSON, not uploads. */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import { listOf } from '../conversation/fields.ts';
import { readObject } from '../direct/json-reply.ts';
import { answered, fitted, type ImageAbilities, type ImageAdapter, itemOf, passedThrough } from './adapter.ts';
import { dataUrl } from './request.ts';

const IMAGINE: ImageAbilities = {
  n: 10,
  ratios: ['1:1', '1:2', '2:1', '2:3', '3:2', '3:4', '4:3', '9:16', '16:9', '9:19.5', '19.5:9', '9:20', '20:9'],
  tiers: ['1K', '2K'],
  references: 3,
};

function abilities(model: string): ImageAbilities {
  return /^grok-2/.test(model) ? { n: 10 } : IMAGINE;
}

export const xaiImages: ImageAdapter = {
  abilities,
  start(request, target) {
    const able = abilities(target.model);
    const { prompt, n, size, references } = fitted(request, able);
    const images = references.map((reference) => ({ type: 'image_url', url: dataUrl(reference) }));
    const body = {
      ...passedThrough(request, target, able),
      model: target.model,
      prompt,
      n,
      response_format: 'b64_json',
      ...(size.ratio && { aspect_ratio: size.ratio }),
      ...(size.tier && { resolution: size.tier.toLowerCase() }),
      ...(images.length === 1 && { image: images[0] }),
      ...(images.length > 1 && { images }),
      user: target.user,
    };
    return {
      call: { path: images.length > 0 ? '/images/edits' : '/images/generations', body: stringifyJson(body) },
      read(reply) {
        const object = readObject(reply);
        if ('failure' in object) return object;
        return answered(listOf(object.value['data']).flatMap((item) => itemOf(item) ?? []));
      },
    };
  },
  decodeFailure,
};
