/**
 * Images of OpenAI (platform.openai.com/docs/api-reference/images): generations, edits with references, and streams.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import { decodeFailure, decodeInBand } from '../chat/failure.ts';
import type { Usage } from '../conversation/conversation.ts';
import { withUsage } from '../conversation/failure.ts';
import { countOf, type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import {
  type CallPlan,
  type DirectTarget,
  type EventStep,
  inputUsage,
  type Reply,
  type ReplyEvents,
  type Step,
} from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import { encodeMultipart } from '../direct/multipart.ts';
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
import { type ImageAnswer, type MadeImage, made, partialEvent } from './reply.ts';
import type { ImageRequest } from './request.ts';
import { type Bounds, isWithin, type Pixels, pixelsFor, type Size, within } from './size.ts';

const LEGACY_SIZES = ['1024x1024', '1536x1024', '1024x1536'];
const GPT_OPTIONS = ['moderation', 'input_fidelity', 'complexity', 'svg'];
/** Partial images requested per image when the client streams and does not say how many. */
const PARTIAL_IMAGES = 2;

const GPT: ImageAbilities = {
  n: 10,
  ratios: ['1:1', '3:2', '2:3'],
  pixels: true,
  qualities: ['low', 'medium', 'high'],
  formats: ['png', 'jpeg', 'webp'],
  transparent: true,
  compression: true,
  references: 16,
  streams: true,
  passthrough: GPT_OPTIONS,
};

/**
 * From gpt-image-2 on sizes are free; only gpt-image-2 itself cannot generate transparency; the higher qualities start
 * with 2.5.
 */
function abilities(model: string): ImageAbilities {
  if (/^dall-e-2/.test(model)) return { n: 10, ratios: ['1:1'], tiers: ['512', '1K'], references: 1 };
  if (/^dall-e-3/.test(model)) return { n: 1, ratios: ['1:1', '7:4', '4:7'], pixels: true, passthrough: ['style'] };
  if (!isFree(model)) return GPT;
  return {
    ...GPT,
    ratios: [
      '1:1',
      '1:2',
      '2:1',
      '2:3',
      '2.35:1',
      '3:2',
      '3:4',
      '4:3',
      '4:5',
      '5:2',
      '5:4',
      '5:7',
      '7:5',
      '9:16',
      '16:9',
      '9:19.5',
      '19.5:9',
      '9:20',
      '20:9',
      '9:21',
      '21:9',
    ],
    tiers: ['512', '768', '1K', '1.5K', '2K', '4K'],
    formats: ['png', 'jpeg', 'webp', 'svg'],
    transparent: !/^gpt-image-2(?![.\d])/.test(model),
    ...(/^gpt-image-(?:2\.[5-9]|[3-9])/.test(model) && { qualities: ['low', 'medium', 'high', 'xhigh', 'max'] }),
  };
}

function isFree(model: string): boolean {
  return /^gpt-image-[2-9]/.test(model);
}

/** OpenAI itself, which identifies models by name. */
export const openaiImages: ImageAdapter = imagesOf((model) => model);

/**
 * OpenAI's models at services where the operator chooses the deployment name. The model is recognized if the name
 * contains it (`prod-gpt-image-1.5`); otherwise a first-generation gpt-image model is assumed.
 */
export const deployedImages: ImageAdapter = imagesOf(
  (deployment) => /(?:dall-e-|gpt-image-)\S*/.exec(deployment)?.[0] ?? 'gpt-image-1',
);

/** @param modelOf maps an upstream name to its model */
function imagesOf(modelOf: (name: string) => string): ImageAdapter {
  return {
    abilities: (name) => abilities(modelOf(name)),
    start: (request, target) => start(request, target, modelOf(target.model)),
    decodeFailure,
  };
}

function start(request: ImageRequest, target: DirectTarget, model: string): CallPlan<ImageAnswer> {
  const able = abilities(model);
  const wanted = fitted(request, able);
  const streams = target.stream && able.streams === true && wanted.n === 1 && wanted.format !== 'svg';
  const members: Fields = {
    ...extrasOf(request, able),
    ...passedThrough(request, target, able),
    model: target.model,
    prompt: wanted.prompt,
    n: wanted.n,
    ...sizeMember(wanted.size, model),
    ...(wanted.quality && { quality: wanted.quality }),
    ...(wanted.background && { background: wanted.background }),
    ...(wanted.format && { output_format: wanted.format }),
    ...(wanted.compression !== undefined && { output_compression: wanted.compression }),
    ...(streams && { stream: true, partial_images: wanted.partialImages ?? PARTIAL_IMAGES }),
    // Newer models always return bytes and reject this member.
    ...(/^dall-e/.test(model) && { response_format: 'b64_json' }),
    user: target.user,
  };
  return { ...call(wanted, members), read, ...(streams && { events: () => new ImageEvents(wanted.events) }) };
}

/** Those that the model has. */
function extrasOf({ extras }: ImageRequest, { passthrough = [] }: ImageAbilities): Fields {
  return Object.fromEntries(Object.entries(extras).filter(([name]) => passthrough.includes(name)));
}

function call({ references }: ImageRequest, members: Fields): Pick<CallPlan<ImageAnswer>, 'call'> {
  if (references.length === 0) return { call: { path: '/images/generations', body: stringifyJson(members) } };
  const fields = Object.fromEntries(
    Object.entries(members).map(([name, value]) => [
      name,
      typeof value === 'object' ? stringifyJson(value) : String(value),
    ]),
  );
  const files = references.map(({ mediaType, data }, index) => ({
    name: references.length === 1 ? 'image' : 'image[]',
    filename: `reference-${index + 1}.${mediaType.replace(/^image\/|\+.*$/g, '')}`,
    mediaType,
    bytes: Buffer.from(data, 'base64'),
  }));
  const { contentType, body } = encodeMultipart(fields, files);
  return { call: { path: '/images/edits', contentType, body } };
}

/** @throws Uncarried for explicit pixels that the model cannot generate */
function sizeMember(size: Size, model: string): { size?: string } {
  const { pixels } = size;
  const text = ({ width, height }: Pixels) => `${width}x${height}`;
  if (pixels === undefined && size.ratio === undefined && size.tier === undefined) return {};
  if (/^dall-e-2/.test(model)) return { size: size.tier === '512' ? '512x512' : '1024x1024' };
  if (/^dall-e-3/.test(model)) {
    if (pixels === undefined)
      return { size: { '7:4': '1792x1024', '4:7': '1024x1792' }[size.ratio ?? ''] ?? '1024x1024' };
    return { size: oneOf(text(pixels), ['1024x1024', '1792x1024', '1024x1792']) };
  }
  if (!isFree(model)) {
    if (pixels !== undefined) return { size: oneOf(text(pixels), LEGACY_SIZES) };
    return size.ratio === undefined
      ? {}
      : { size: { '3:2': '1536x1024', '2:3': '1024x1536' }[size.ratio] ?? '1024x1024' };
  }
  return { size: text(pixels === undefined ? within(pixelsFor(size, BOUNDS.step), BOUNDS) : checked(pixels)) };
}

function oneOf(size: string, sizes: readonly string[]): string {
  if (sizes.includes(size)) return size;
  throw new Uncarried('size', `the model generates ${sizes.join(', ')}, not ${size}`);
}

/** From gpt-image-2 on. */
const BOUNDS: Bounds = { step: 16, shortest: 16, longest: 3840, mostPixels: 3840 * 2160, steepest: 3 };

function checked(pixels: Pixels): Pixels {
  if (isWithin(pixels, BOUNDS)) return pixels;
  throw new Uncarried('size', 'sides must be divisible by 16, ratio 1:3 to 3:1, at most 3840x2160');
}

function read(reply: Reply): Step<ImageAnswer> {
  const object = readObject(reply);
  if ('failure' in object) return object;
  const { value } = object;
  const items = listOf(value['data']).flatMap((item) => itemOf(item) ?? []);
  return answered(items, {
    usage: (images) => usageOf(value, images),
    ...timeOf(value['created']),
  });
}

/** Tokens if reported, and image counts in any case: the price list decides which of them are charged. */
function usageOf(value: Fields, images: readonly MadeImage[]): Usage {
  const usage = { ...inputUsage(0), ...piecesOf(images) };
  for (const told of [value['usage'], value['svg_usage']]) {
    if (!isFields(told)) continue;
    const [inputDetails, outputDetails] = [
      fieldsOf(told['input_tokens_details']),
      fieldsOf(told['output_tokens_details']),
    ];
    const output = countOf(told['output_tokens']);
    usage.input += countOf(told['input_tokens']);
    usage.output += output;
    usage.reasoning += countOf(told['reasoning_tokens']);
    if (told === value['svg_usage']) continue;
    usage.inputImage = countOf(inputDetails['image_tokens']);
    // Output counts as image tokens unless the details say otherwise.
    usage.outputImage = isFields(told['output_tokens_details']) ? countOf(outputDetails['image_tokens']) : output;
  }
  return usage;
}

/** Reads the events of one image: partial images, then the image with its usage. */
class ImageEvents implements ReplyEvents<ImageAnswer> {
  readonly #events: ImageRequest['events'];

  constructor(events: ImageRequest['events']) {
    this.#events = events;
  }

  read(name: string, data: string): EventStep<ImageAnswer> {
    let value: Fields;
    try {
      value = fieldsOf(parseJson(data));
    } catch {
      return data === '[DONE]' ? {} : { failure: malformed('an event that is not JSON', data) };
    }
    const type = textOf(value['type']) || name;
    if (/\.partial_image$/.test(type)) {
      const index = countOf(value['partial_image_index']);
      return { text: partialEvent(textOf(value['b64_json']), index, this.#events) };
    }
    if (/\.completed$/.test(type)) {
      const images = [made(textOf(value['b64_json']))];
      return {
        answer: { images, ...timeOf(value['created_at']) },
        usage: usageOf(value, images),
      };
    }
    const failure = decodeInBand(type, value);
    if (failure === undefined) return {};
    return { failure: withUsage(failure, isFields(value['usage']) ? usageOf(value, []) : undefined) };
  }
}
