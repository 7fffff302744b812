/**
 * Images on Amazon Bedrock (`InvokeModel`): Nova Canvas
 * (docs.aws.amazon.com/nova/latest/userguide/image-gen-req-resp-structure.html), Titan Image Generator and Stability's
 * models (docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html). All return a list of base64 and no token
 * counts: they are charged per image.
 */
import { stringifyJson } from '../../base/json.ts';
import { type Fields, listOf, textOf } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { decodeFailure } from '../converse/failure.ts';
import { vendorOf } from '../converse/vendor.ts';
import type { Reply, Step } from '../direct/index.ts';
import { readFields } from '../direct/json-reply.ts';
import { answered, fitted, type ImageAbilities, type ImageAdapter, passedThrough } from './adapter.ts';
import { filtered, type ImageAnswer } from './reply.ts';
import type { ImageRequest } from './request.ts';
import { type Bounds, isWithin, nearestRatio, type Pixels, pixelsFor, RATIOS, type Size, within } from './size.ts';

type Family = 'nova' | 'titan' | 'stability' | undefined;

function familyOf(model: string): Family {
  const vendor = vendorOf(model);
  if (vendor === 'stability') return 'stability';
  if (vendor !== 'amazon') return undefined;
  if (/\.nova-canvas/.test(model)) return 'nova';
  return /\.titan-image-generator/.test(model) ? 'titan' : undefined;
}

const AMAZON: ImageAbilities = {
  n: 5,
  pixels: true,
  // Sent as `standard` and `premium`.
  qualities: ['medium', 'high'],
  formats: ['png'],
  seed: true,
  references: 5,
  passthrough: ['negativeText', 'cfgScale', 'similarityStrength', 'style'],
};

const NOVA: ImageAbilities = {
  ...AMAZON,
  ratios: RATIOS.filter((ratio) => ratio !== '1:8' && ratio !== '8:1'),
  tiers: ['512', '768', '1K', '1.5K', '2K'],
};
const NOVA_BOUNDS: Bounds = { step: 16, shortest: 320, longest: 4096, mostPixels: 2048 * 2048, steepest: 4 };

/** Titan's sizes by ratio, largest first. */
const TITAN_SIZES: Readonly<Record<string, readonly Pixels[]>> = {
  '1:1': sizes('1024x1024 768x768 512x512'),
  '2:3': sizes('768x1152 384x576'),
  '3:2': sizes('1152x768 576x384'),
  '3:5': sizes('768x1280 384x640'),
  '5:3': sizes('1280x768 640x384'),
  '7:9': sizes('896x1152 448x576'),
  '9:7': sizes('1152x896 576x448'),
  '6:11': sizes('768x1408 384x704'),
  '11:6': sizes('1408x768 704x384'),
  '5:11': sizes('640x1408 320x704'),
  '11:5': sizes('1408x640 704x320'),
  '9:5': sizes('1152x640'),
  '16:9': sizes('1173x640'),
};
const TITAN: ImageAbilities = {
  ...AMAZON,
  ratios: Object.keys(TITAN_SIZES),
  tiers: ['512', '768', '1K'],
  passthrough: ['negativeText', 'cfgScale', 'similarityStrength'],
};

function sizes(list: string): Pixels[] {
  return list.split(' ').map((text) => {
    const [width = 0, height = 0] = text.split('x').map(Number);
    return { width, height };
  });
}

function abilities(model: string): ImageAbilities {
  const family = familyOf(model);
  if (family === 'nova') return NOVA;
  if (family === 'titan') return TITAN;
  if (family === undefined) return { n: 1 };
  return {
    n: 1,
    ratios: ['1:1', '2:3', '3:2', '4:5', '5:4', '9:16', '16:9', '9:21', '21:9'],
    formats: ['png', 'jpeg'],
    seed: true,
    ...(/\.sd3/.test(model) && { references: 1 }),
    passthrough: ['negative_prompt', ...(/\.sd3/.test(model) ? ['strength'] : [])],
  };
}

export const bedrockImages: ImageAdapter = {
  abilities,
  start(request, target) {
    const family = familyOf(target.model);
    if (family === undefined) throw new Uncarried('model', 'image generation is not supported for this model');
    const able = abilities(target.model);
    const wanted = fitted(request, able);
    const options = passedThrough(request, target, able);
    const body =
      family === 'stability'
        ? stabilityBody(wanted, options, target.model)
        : amazonBody(wanted, options, pixelsOf(wanted.size, family));
    return {
      call: { path: `/model/${encodeURIComponent(target.model)}/invoke`, body: stringifyJson(body) },
      read: family === 'stability' ? readStability : readAmazon,
    };
  },
  decodeFailure,
};

/** @throws Uncarried for explicit pixels that the model cannot generate */
function pixelsOf(size: Size, family: 'nova' | 'titan'): Pixels | undefined {
  const { pixels, ratio, tier } = size;
  if (pixels === undefined && ratio === undefined && tier === undefined) return undefined;
  if (family === 'nova') {
    if (pixels === undefined) return within(pixelsFor(size, NOVA_BOUNDS.step), NOVA_BOUNDS);
    if (isWithin(pixels, NOVA_BOUNDS)) return pixels;
    throw new Uncarried(
      'size',
      'sides must be 320 to 4096 and divisible by 16, ratio 1:4 to 4:1, at most 4 megapixels',
    );
  }
  if (pixels === undefined) {
    const offered = TITAN_SIZES[nearestRatio(ratio ?? '1:1', Object.keys(TITAN_SIZES))]!;
    const wanted = pixelsFor({ ratio: ratio ?? '1:1', ...(tier && { tier }) }, 1);
    const distance = (each: Pixels) => Math.abs(each.width * each.height - wanted.width * wanted.height);
    return offered.toSorted((one, other) => distance(one) - distance(other))[0]!;
  }
  const all = Object.values(TITAN_SIZES).flat();
  if (all.some(({ width, height }) => width === pixels.width && height === pixels.height)) return pixels;
  throw new Uncarried(
    'size',
    `the model generates only ${all.map(({ width, height }) => `${width}x${height}`).join(', ')}`,
  );
}

/** With references, requests a variation of them. */
function amazonBody(
  { prompt, n, quality, seed, references }: ImageRequest,
  { cfgScale, similarityStrength, style, negativeText }: Fields,
  pixels: Pixels | undefined,
): Fields {
  const imageGenerationConfig = {
    numberOfImages: n,
    ...pixels,
    ...(quality && { quality: quality === 'high' ? 'premium' : 'standard' }),
    ...(cfgScale !== undefined && { cfgScale }),
    ...(seed !== undefined && { seed }),
  };
  const texts = { text: prompt, ...(negativeText !== undefined && { negativeText }) };
  if (references.length === 0) {
    const textToImageParams = { ...texts, ...(style !== undefined && { style }) };
    return { taskType: 'TEXT_IMAGE', textToImageParams, imageGenerationConfig };
  }
  const imageVariationParams = {
    ...texts,
    images: references.map(({ data }) => data),
    ...(similarityStrength !== undefined && { similarityStrength }),
  };
  return { taskType: 'IMAGE_VARIATION', imageVariationParams, imageGenerationConfig };
}

/** Default strength of a reference (0 copies it, 1 ignores it). */
const USUAL_STRENGTH = 0.7;

function stabilityBody(
  { prompt, size, format, seed, references }: ImageRequest,
  options: Fields,
  model: string,
): Fields {
  const [reference] = references;
  return {
    ...(reference && { strength: USUAL_STRENGTH }),
    ...options,
    prompt,
    ...(/\.sd3/.test(model) && { mode: reference ? 'image-to-image' : 'text-to-image' }),
    // A reference determines the ratio.
    ...(reference ? { image: reference.data } : size.ratio && { aspect_ratio: size.ratio }),
    output_format: format ?? 'png',
    ...(seed !== undefined && { seed }),
  };
}

/** Reads the images that passed moderation; `error` explains missing ones. */
function readAmazon(reply: Reply): Step<ImageAnswer> {
  const object = readFields(reply);
  if ('failure' in object) return object;
  const items = itemsOf(object.value);
  const problem = textOf(object.value['error']);
  return items.length === 0 && problem !== '' ? { failure: filtered(problem) } : answered(items);
}

function readStability(reply: Reply): Step<ImageAnswer> {
  const object = readFields(reply);
  if ('failure' in object) return object;
  const reason = listOf(object.value['finish_reasons'])
    .map(textOf)
    .find((text) => text !== '');
  // A filtered reply may still contain an image, but a blurred one.
  if (reason === undefined) return answered(itemsOf(object.value));
  return {
    failure: /filter/i.test(reason) ? filtered(reason) : { kind: 'server', status: 502, message: reason },
  };
}

function itemsOf({ images }: Fields): { data: string }[] {
  return listOf(images).flatMap((image) => (textOf(image) === '' ? [] : [{ data: textOf(image) }]));
}
