/** Images of Black Forest Labs (docs.bfl.ai): FLUX. A job is submitted and then polled until it is ready. */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import { fieldsOf, textOf } from '../conversation/fields.ts';
import type { CallPlan, DirectTarget, Reply, Step } from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import { serviceUrl } from '../direct/service-url.ts';
import { answered, fitted, type ImageAbilities, type ImageAdapter, passedThrough } from './adapter.ts';
import { filtered, type ImageAnswer } from './reply.ts';
import { pixelsFor, type Size } from './size.ts';

const FIRST_LOOK_MS = 500;
const NEXT_LOOK_MS = 1_000;
const RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '9:21', '21:9'];

/** FLUX.2 and FLUX 1 accept pixels; Kontext and Ultra accept a ratio. */
function abilities(model: string): ImageAbilities {
  const common: ImageAbilities = {
    n: 1,
    ratios: RATIOS,
    seed: true,
    formats: ['png', 'jpeg'],
    passthrough: ['safety_tolerance', 'prompt_upsampling', 'raw', 'steps', 'guidance'],
  };
  if (/^flux-2/.test(model))
    return { ...common, pixels: true, tiers: ['512', '768', '1K', '1.5K', '2K'], references: 8 };
  if (/kontext/.test(model)) return { ...common, references: 4 };
  return /ultra/.test(model) ? common : { ...common, pixels: true };
}

export const blackForestImages: ImageAdapter = {
  abilities,
  start(request, target) {
    const able = abilities(target.model);
    const { prompt, size, seed, format, references } = fitted(request, able);
    const inputs = references.map(({ data }, index) => [
      index === 0 ? 'input_image' : `input_image_${index + 1}`,
      data,
    ]);
    const body = {
      ...passedThrough(request, target, able),
      prompt,
      ...sizeMembers(size, target.model, able.pixels === true),
      ...(seed !== undefined && { seed }),
      ...(format && { output_format: format }),
      ...Object.fromEntries(inputs),
    };
    return {
      call: { path: `/${encodeURIComponent(target.model)}`, body: stringifyJson(body) },
      read: (reply) => accepted(reply, target),
    };
  },
  decodeFailure,
};

function sizeMembers(size: Size, model: string, free: boolean): Record<string, unknown> {
  if (!free) return size.ratio === undefined ? {} : { aspect_ratio: size.ratio };
  if (size.pixels === undefined && size.ratio === undefined && size.tier === undefined) return {};
  // The older models generate sides of at most 1,440 pixels.
  return { ...pixelsFor(size, /^flux-2/.test(model) ? 16 : 32, '1K') };
}

function accepted(reply: Reply, target: DirectTarget): Step<ImageAnswer> {
  const object = readObject(reply);
  if ('failure' in object) return object;
  const id = textOf(object.value['id']);
  const told = textOf(object.value['polling_url']);
  if (id === '' && told === '') return { failure: malformed('a job without an id') };
  const fallback = `/get_result?id=${encodeURIComponent(id)}`;
  const url = told === '' ? undefined : serviceUrl(told, target.baseUrl, 'bfl.ai');
  if (told !== '' && url === undefined) return { failure: malformed('a polling URL of another host') };
  const look: CallPlan<ImageAnswer> = {
    call: { method: 'GET', path: fallback, body: '', ...(url !== undefined && { url }) },
    read: (result) => looked(result, look),
  };
  return { next: look, afterMs: FIRST_LOOK_MS, accepted: true, ...(id !== '' && { upstreamId: id }) };
}

function looked(reply: Reply, again: CallPlan<ImageAnswer>): Step<ImageAnswer> {
  const object = readObject(reply);
  if ('failure' in object) return object;
  const { status, result, details } = object.value;
  switch (status) {
    case 'Ready': {
      const sample = textOf(fieldsOf(result)['sample']);
      return answered(sample === '' ? [] : [{ url: sample }]);
    }
    case 'Pending':
    case 'Queued':
    case 'Processing':
    case 'Reserved':
      return { next: again, afterMs: NEXT_LOOK_MS, accepted: true };
    case 'Request Moderated':
    case 'Content Moderated':
      return { failure: filtered(`the service refused: ${status}`) };
    default:
      return {
        failure: {
          kind: 'server',
          status: 500,
          message: `the job ended with status ${textOf(status).slice(0, 100) || 'unknown'}`,
          ...(details !== undefined && { raw: details }),
        },
      };
  }
}
