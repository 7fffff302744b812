/** Images of a service that speaks this public format (`POST /images`): another gateway. */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import { decodeUsage } from '../chat/usage.ts';
import { listOf } from '../conversation/fields.ts';
import { inputUsage } from '../direct/index.ts';
import { readObject } from '../direct/json-reply.ts';
import {
  answered,
  fitted,
  type ImageAbilities,
  type ImageAdapter,
  itemOf,
  passedThrough,
  piecesOf,
  timeOf,
} from './adapter.ts';
import { dataUrl, QUALITIES, type Quality } from './request.ts';
import { RATIOS, TIER_NAMES } from './size.ts';

/** Supports everything here: that gateway itself refuses what it cannot carry. */
const EVERYTHING: ImageAbilities = {
  n: 10,
  ratios: RATIOS,
  tiers: TIER_NAMES,
  pixels: true,
  qualities: QUALITIES.filter((word): word is Quality => word !== 'auto'),
  formats: ['png', 'jpeg', 'webp', 'svg'],
  transparent: true,
  compression: true,
  seed: true,
  references: 16,
};

export const publicImages: ImageAdapter = {
  abilities: () => EVERYTHING,
  start(request, target) {
    const { prompt, n, size, quality, background, format, compression, seed, references } = fitted(request, EVERYTHING);
    const body = {
      ...passedThrough(request, target, EVERYTHING),
      model: target.model,
      prompt,
      n,
      ...(size.pixels && { size: `${size.pixels.width}x${size.pixels.height}` }),
      ...(size.ratio && { aspect_ratio: size.ratio }),
      ...(size.tier && { resolution: size.tier }),
      ...(quality && { quality }),
      ...(background && { background }),
      ...(format && { output_format: format }),
      ...(compression !== undefined && { output_compression: compression }),
      ...(seed !== undefined && { seed }),
      ...(references.length > 0 && {
        input_references: references.map((each) => ({ type: 'image_url', image_url: { url: dataUrl(each) } })),
      }),
      user: target.user,
    };
    return {
      call: { path: '/images', body: stringifyJson(body) },
      read(reply) {
        const object = readObject(reply);
        if ('failure' in object) return object;
        const { data, created, usage } = object.value;
        return answered(
          listOf(data).flatMap((item) => itemOf(item) ?? []),
          {
            usage: (images) => ({ ...(decodeUsage(usage) ?? inputUsage(0)), ...piecesOf(images) }),
            ...timeOf(created),
          },
        );
      },
    };
  },
  decodeFailure,
};
