/** What adapters of image services have in common: what a service can do, and what it makes of a request. */
import type { Usage } from '../conversation/conversation.ts';
import { fieldsOf } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { type Adapter, inputUsage, type SingleTarget, type Step } from '../single/index.ts';
import { dimensionsOf } from './dimensions.ts';
import { empty, type ImageAnswer, type MadeImage, made } from './reply.ts';
import type { ImageRequest, OutputFormat, Quality } from './request.ts';
import { nearestRatio, nearestTier, type Size, squareOf, type Tier } from './size.ts';

/** What one model of a service takes; what is absent it does not. Shown by `GET /images/models`. */
export interface ImageAbilities {
  /** The most images of one call. */
  n: number;
  ratios?: readonly string[];
  tiers?: readonly Tier[];
  /** Explicit pixels are taken. */
  pixels?: boolean;
  qualities?: readonly Quality[];
  /** Formats that can be asked for. Absent: the service chooses. */
  formats?: readonly OutputFormat[];
  transparent?: boolean;
  compression?: boolean;
  seed?: boolean;
  /** The most reference images. */
  references?: number;
  streams?: boolean;
  /** Members of `provider.options.<slug>` that go to the service as they are. */
  passthrough?: readonly string[];
}

export interface ImageAdapter extends Adapter<ImageRequest, ImageAnswer> {
  abilities(model: string): ImageAbilities;
}

/**
 * The request as the service takes it: ratio and tier clamped, knobs that it lacks left out, `n` (an upper bound) cut down.
 * @throws Uncarried for what may be neither clamped nor left out
 */
export function fitted(request: ImageRequest, abilities: ImageAbilities): ImageRequest {
  const { n, size, quality, background, format, compression, seed, references, ...rest } = request;
  if (n > 1 && abilities.n === 1) throw new Uncarried('n', 'the service makes one image at a time');
  if (references.length > (abilities.references ?? 0)) {
    const most = abilities.references ?? 0;
    throw new Uncarried(
      'input_references',
      most === 0 ? 'the model takes no reference images' : `the model takes ${most} reference images at most`,
    );
  }
  if (background === 'transparent' && !abilities.transparent) {
    throw new Uncarried('background', 'the service makes no transparent images');
  }
  if (format !== undefined && !abilities.formats?.includes(format)) {
    throw new Uncarried('output_format', `the service does not make ${format} on request`);
  }
  return {
    ...rest,
    n: Math.min(n, abilities.n),
    size: fittedSize(size, abilities),
    references,
    ...(quality !== undefined && abilities.qualities && { quality: fittedQuality(quality, abilities.qualities) }),
    ...(background !== undefined && abilities.transparent && { background }),
    ...(format !== undefined && { format }),
    ...(compression !== undefined && abilities.compression && compresses(format) && { compression }),
    ...(seed !== undefined && abilities.seed && { seed }),
  };
}

/** The size and quality that the service is asked for, for what it charges; of pixels that it refuses, the client's. */
export function charged(
  { size, quality }: ImageRequest,
  abilities: ImageAbilities,
): Pick<ImageRequest, 'size' | 'quality'> {
  return {
    size: size.pixels === undefined ? fittedSize(size, abilities) : size,
    ...(quality !== undefined && abilities.qualities && { quality: fittedQuality(quality, abilities.qualities) }),
  };
}

function fittedSize({ pixels, ratio, tier }: Size, { pixels: free, ratios, tiers }: ImageAbilities): Size {
  if (pixels !== undefined) {
    if (free) return { pixels };
    const named = ratios?.includes('1:1') ? squareOf(pixels, tiers ?? []) : undefined;
    if (named !== undefined) return named;
    throw new Uncarried('size', `the service does not make exactly ${pixels.width}x${pixels.height}`);
  }
  return {
    ...(ratio !== undefined && ratios && { ratio: nearestRatio(ratio, ratios) }),
    ...(tier !== undefined && tiers && { tier: nearestTier(tier, tiers) }),
  };
}

const ORDER: readonly Quality[] = ['low', 'medium', 'high', 'xhigh', 'max'];

/** The same word, or the best below it. */
function fittedQuality(quality: Quality, offered: readonly Quality[]): Quality {
  const below = ORDER.slice(0, ORDER.indexOf(quality) + 1).toReversed();
  return below.find((each) => offered.includes(each)) ?? offered[0]!;
}

function compresses(format: OutputFormat | undefined): boolean {
  return format === 'jpeg' || format === 'webp';
}

/** What the client addresses to this provider. @throws Uncarried for a member that the service has no place for */
export function passedThrough(
  { options }: ImageRequest,
  { providerId }: SingleTarget,
  { passthrough = [] }: ImageAbilities,
): Record<string, unknown> {
  const given = fieldsOf(options[providerId]);
  const unknown = Object.keys(given).find((name) => !passthrough.includes(name));
  if (unknown !== undefined) {
    throw new Uncarried(`provider.options.${providerId}.${unknown}`, 'is not passed on to this service');
  }
  return given;
}

/** Of images that are charged by the piece or by their area. */
export function piecesUsage(images: readonly MadeImage[]): Usage {
  return { ...inputUsage(0), ...piecesOf(images) };
}

/** A megapixel is one of 1024 x 1024, begun ones count; an image whose size cannot be read counts as one. */
export function piecesOf(images: readonly MadeImage[]): { outputImages: number; outputMegapixels: number } {
  let megapixels = 0;
  for (const { data } of images) {
    const { width, height } = dimensionsOf(data) ?? { width: 1, height: 1 };
    megapixels += Math.ceil((width * height) / (1024 * 1024));
  }
  return { outputImages: images.length, outputMegapixels: megapixels };
}

/** The images of an answer, of which some may stand at an address that is fetched first. */
export function answered(
  items: readonly ({ data: string; mediaType?: unknown } | { url: string })[],
  about: { usage?: (images: readonly MadeImage[]) => Usage; created?: number; upstreamId?: string } = {},
): Step<ImageAnswer> {
  if (items.length === 0) return { failure: empty() };
  const usageOf = about.usage ?? piecesUsage;
  const finish = (images: readonly MadeImage[]): Step<ImageAnswer> => ({
    answer: { images, ...(about.created !== undefined && { created: about.created }) },
    usage: usageOf(images),
    ...(about.upstreamId !== undefined && { upstreamId: about.upstreamId }),
  });
  const urls = items.flatMap((item) => ('url' in item ? [item.url] : []));
  if (urls.length === 0) {
    return finish(
      items.map((item) => made((item as { data: string }).data, (item as { mediaType?: unknown }).mediaType)),
    );
  }
  return {
    fetch: urls,
    // An image that nobody has seen counts as one megapixel.
    usage: usageOf(items.map((item) => ('url' in item ? { data: '' } : { data: item.data }))),
    ...(about.upstreamId !== undefined && { upstreamId: about.upstreamId }),
    withMedia: (media) =>
      finish(
        items.map((item) => {
          if (!('url' in item)) return made(item.data, item.mediaType);
          const { data, mediaType } = media.get(item.url)!;
          return { data, mediaType };
        }),
      ),
  };
}

/** Unix seconds; undefined for what is none. */
export function timeOf(value: unknown): { created?: number } {
  const known = typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 1e11;
  return known ? { created: value } : {};
}

/** Bytes or an address of a picture, from the names that services give them. */
export function itemOf(value: unknown): { data: string; mediaType?: unknown } | { url: string } | undefined {
  const { b64_json, url, media_type, mime_type, content_type } = fieldsOf(value);
  const type = media_type ?? mime_type ?? content_type;
  if (typeof b64_json === 'string' && b64_json !== '') {
    return splitDataUrl(b64_json) ?? { data: b64_json, ...(type !== undefined && { mediaType: type }) };
  }
  if (typeof url !== 'string' || url === '') return undefined;
  return splitDataUrl(url) ?? { url };
}

function splitDataUrl(text: string): { data: string; mediaType: string } | undefined {
  const head = /^data:([\w.+/-]+)(?:;[\w=.-]+)*;base64,/i.exec(text.slice(0, 256));
  return head === null ? undefined : { data: text.slice(head[0].length), mediaType: head[1]! };
}
