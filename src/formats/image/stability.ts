/**
 * Images of Stability AI (platform.stability.ai/docs/api-reference, v2beta): a form upload, with one image returned as
 * JSON.
 */
import { decodeFailure } from '../chat/failure.ts';
import { textOf } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { readObject } from '../direct/json-reply.ts';
import { encodeMultipart } from '../direct/multipart.ts';
import { answered, fitted, type ImageAbilities, type ImageAdapter, passedThrough } from './adapter.ts';
import { filtered } from './reply.ts';

/** Default strength of a reference (0 copies it, 1 ignores it). */
const USUAL_STRENGTH = 0.7;

function serviceOf(model: string): 'core' | 'ultra' | 'sd3' {
  if (/core$/.test(model)) return 'core';
  return /ultra$/.test(model) ? 'ultra' : 'sd3';
}

function abilities(model: string): ImageAbilities {
  const service = serviceOf(model);
  return {
    n: 1,
    ratios: ['1:1', '2:3', '3:2', '4:5', '5:4', '9:16', '16:9', '9:21', '21:9'],
    formats: service === 'sd3' ? ['png', 'jpeg'] : ['png', 'jpeg', 'webp'],
    seed: true,
    ...(service !== 'core' && { references: 1 }),
    passthrough: ['negative_prompt', 'style_preset', 'cfg_scale', 'strength'],
  };
}

export const stabilityImages: ImageAdapter = {
  abilities,
  start(request, target) {
    const able = abilities(target.model);
    const service = serviceOf(target.model);
    const { prompt, size, format, seed, references } = fitted(request, able);
    const options = passedThrough(request, target, able);
    for (const [name, value] of Object.entries(options)) {
      if (typeof value === 'object')
        throw new Uncarried(`provider.options.${target.providerId}.${name}`, 'must not be an object');
    }
    const fields: Record<string, string> = Object.fromEntries(
      Object.entries({
        ...(references.length > 0 && { strength: USUAL_STRENGTH }),
        ...options,
        prompt,
        output_format: format ?? 'png',
        ...(service === 'sd3' && {
          model: target.model,
          mode: references.length > 0 ? 'image-to-image' : 'text-to-image',
        }),
        // A reference determines the ratio.
        ...(size.ratio && !(service === 'sd3' && references.length > 0) && { aspect_ratio: size.ratio }),
        ...(seed !== undefined && { seed }),
      }).map(([name, value]) => [name, String(value)]),
    );
    const files = references.map(({ mediaType, data }) => ({
      name: 'image',
      filename: `reference.${mediaType.replace('image/', '')}`,
      mediaType,
      bytes: Buffer.from(data, 'base64'),
    }));
    return {
      call: { path: `/v2beta/stable-image/generate/${service}`, ...encodeMultipart(fields, files) },
      read(reply) {
        const object = readObject(reply);
        if ('failure' in object) return object;
        const { image, finish_reason } = object.value;
        if (finish_reason === 'CONTENT_FILTERED') return { failure: filtered('the image was filtered by the service') };
        const data = textOf(image);
        return answered(data === '' ? [] : [{ data }]);
      },
    };
  },
  decodeFailure,
};
