/**
 * Images of models at fal (docs.fal.ai, queue): a job is submitted, polled, then fetched. Each model has its own
 * members; those that most image models share are sent, and others come from `provider.options.fal`.
 */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import { fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import type { CallPlan, DirectTarget, Reply, Step } from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import { serviceUrl } from '../direct/service-url.ts';
import { answered, fitted, type ImageAbilities, type ImageAdapter, itemOf, passedThrough } from './adapter.ts';
import { filtered, type ImageAnswer } from './reply.ts';
import { dataUrl, type ImageRequest } from './request.ts';
import { pixelsFor, RATIOS } from './size.ts';

const FIRST_LOOK_MS = 500;
const NEXT_LOOK_MS = 1_000;

/** Models that accept pixels (`image_size`) instead of a ratio. */
const BY_PIXELS = /flux(?!.*(?:kontext|ultra))|sdxl|stable-diffusion|qwen|seedream|hidream|recraft|ideogram|z-image/;
/** Several references go into `image_urls`; the older edit models accept one in `image_url`. */
const EDITS_MANY = /(?:edit|multi)(?:\/|$)/;
const EDITS_ONE = /image-to-image|kontext|redux|img2img/;

function abilities(model: string): ImageAbilities {
  return {
    n: 4,
    ratios: [...RATIOS],
    formats: ['png', 'jpeg'],
    seed: true,
    ...(BY_PIXELS.test(model) && { pixels: true, tiers: ['512', '768', '1K', '1.5K', '2K'] as const }),
    ...(EDITS_MANY.test(model) ? { references: 16 } : EDITS_ONE.test(model) && { references: 1 }),
    passthrough: [
      ...['guidance_scale', 'num_inference_steps', 'negative_prompt', 'strength', 'style', 'acceleration', 'loras'],
      ...['enable_safety_checker', 'safety_tolerance', 'resolution', 'rendering_speed', 'expand_prompt'],
    ],
  };
}

export const falImages: ImageAdapter = {
  abilities,
  start(request, target) {
    const able = abilities(target.model);
    const wanted = fitted(request, able);
    const body = {
      ...passedThrough(request, target, able),
      prompt: wanted.prompt,
      num_images: wanted.n,
      ...sizeMember(wanted, able),
      ...(wanted.format && { output_format: wanted.format }),
      ...(wanted.seed !== undefined && { seed: wanted.seed }),
      ...referencesMember(wanted, target.model),
    };
    const path = `/${target.model.split('/').map(encodeURIComponent).join('/')}`;
    return { call: { path, body: stringifyJson(body) }, read: (reply) => accepted(reply, target) };
  },
  decodeFailure,
};

function sizeMember({ size }: ImageRequest, { pixels }: ImageAbilities): Record<string, unknown> {
  if (size.pixels === undefined && size.ratio === undefined && size.tier === undefined) return {};
  if (pixels) return { image_size: pixelsFor(size, 16) };
  return size.ratio === undefined ? {} : { aspect_ratio: size.ratio };
}

function referencesMember({ references }: ImageRequest, model: string): Record<string, unknown> {
  if (references.length === 0) return {};
  const urls = references.map(dataUrl);
  return EDITS_MANY.test(model) ? { image_urls: urls } : { image_url: urls[0] };
}

function accepted(reply: Reply, target: DirectTarget): Step<ImageAnswer> {
  const object = readObject(reply);
  if ('failure' in object) return object;
  const { request_id, status_url, response_url } = object.value;
  const [status, response] = [status_url, response_url].map((url) =>
    serviceUrl(textOf(url), target.baseUrl, 'fal.run'),
  );
  if (status === undefined || response === undefined) {
    return { failure: malformed('a job URL of another host') };
  }
  const fetch: CallPlan<ImageAnswer> = { call: { method: 'GET', path: '', url: response, body: '' }, read: finished };
  const look: CallPlan<ImageAnswer> = {
    call: { method: 'GET', path: '', url: status, body: '' },
    read(told) {
      const progress = readObject(told);
      if ('failure' in progress) return progress;
      switch (progress.value['status']) {
        case 'COMPLETED':
          return { next: fetch, accepted: true };
        case 'IN_QUEUE':
        case 'IN_PROGRESS':
          return { next: look, afterMs: NEXT_LOOK_MS, accepted: true };
        default:
          return { failure: malformed('a job in an unknown state') };
      }
    },
  };
  const upstreamId = textOf(request_id);
  return { next: look, afterMs: FIRST_LOOK_MS, accepted: true, ...(upstreamId !== '' && { upstreamId }) };
}

function finished(reply: Reply): Step<ImageAnswer> {
  const object = readObject(reply);
  if ('failure' in object) return object;
  const { images, image, has_nsfw_concepts } = object.value;
  const made = isFields(image) ? [image] : listOf(images);
  const filters = listOf(has_nsfw_concepts);
  // The safety checker replaces an image by a black one.
  const shown = made.filter((_, index) => filters[index] !== true).map(fieldsOf);
  if (made.length > 0 && shown.length === 0) return { failure: filtered('every image was filtered by the service') };
  return answered(shown.flatMap((item) => itemOf(item) ?? []));
}
