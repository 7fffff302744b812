/** Shared by image adapters: what a service supports, and fitting a request to it. */
import type { Usage } from '../conversation/conversation.ts';
import { fieldsOf } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { type Adapter, type DirectTarget, inputUsage, type Step } from '../direct/index.ts';
import { dimensionsOf } from './dimensions.ts';
import { empty, type ImageAnswer, type MadeImage, made } from './reply.ts';
import type { ImageRequest, OutputFormat, Quality } from './request.ts';
import { nearestRatio, nearestTier, type Size, squareOf, type Tier } from './size.ts';

/** The parameters that a model supports; absent means unsupported. Shown by `GET /images/models`. */
export interface ImageAbilities {
  /** Most images per call. */
  n: number;
  ratios?: readonly string[];
  tiers?: readonly Tier[];
  /** Whether explicit pixels are accepted. */
  pixels?: boolean;
  qualities?: readonly Quality[];
  /** Formats that can be requested. Absent: the service chooses. */
  formats?: readonly OutputFormat[];
  transparent?: boolean;
  compression?: boolean;
  seed?: boolean;
  /** Most reference images. */
  references?: number;
  streams?: boolean;
  /** Members of `provider.options.<slug>` that pass through unchanged. */
  passthrough?: readonly string[];
}

export interface ImageAdapter extends Adapter<ImageRequest, ImageAnswer> {
  abilities(model: string): ImageAbilities;
}

/**
 * Fits the request to the service: clamps ratio and tier, drops unsupported parameters, and reduces `n`, which is an
 * upper bound.
 * @throws Uncarried for what can be neither clamped nor dropped
 */
export function fitted(request: ImageRequest, abilities: ImageAbilities): ImageRequest {
  const { n, size, quality, background, format, compression, seed, references, ...rest } = request;
  if (n > 1 && abilities.n === 1) throw new Uncarried('n', 'the service generates one image per call');
  if (references.length > (abilities.references ?? 0)) {
    const most = abilities.references ?? 0;
    throw new Uncarried(
      'input_references',
      most === 0 ? 'the model does not accept reference images' : `the model accepts at most ${most} reference images`,
    );
  }
  if (background === 'transparent' && !abilities.transparent) {
    throw new Uncarried('background', 'the service cannot generate transparent images');
  }
  if (format !== undefined && !abilities.formats?.includes(format)) {
    throw new Uncarried('output_format', `the service cannot be asked for ${format}`);
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

/** Size and quality as sent to the service, for pricing. Explicit pixels that it would refuse stay the client's. */
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
    throw new Uncarried('size', `the service cannot generate exactly ${pixels.width}x${pixels.height}`);
  }
  return {
    ...(ratio !== undefined && ratios && { ratio: nearestRatio(ratio, ratios) }),
    ...(tier !== undefined && tiers && { tier: nearestTier(tier, tiers) }),
  };
}

const ORDER: readonly Quality[] = ['low', 'medium', 'high', 'xhigh', 'max'];

/** The same quality, else the best one below it. */
function fittedQuality(quality: Quality, offered: readonly Quality[]): Quality {
  const below = ORDER.slice(0, ORDER.indexOf(quality) + 1).toReversed();
  return below.find((each) => offered.includes(each)) ?? offered[0]!;
}

function compresses(format: OutputFormat | undefined): boolean {
  return format === 'jpeg' || format === 'webp';
}

/** The options addressed to this provider. @throws Uncarried for an option that the service does not support */
export function passedThrough(
  { options }: ImageRequest,
  { providerId }: DirectTarget,
  { passthrough = [] }: ImageAbilities,
): Record<string, unknown> {
  const given = fieldsOf(options[providerId]);
  const unknown = Object.keys(given).find((name) => !passthrough.includes(name));
  if (unknown !== undefined) {
    throw new Uncarried(`provider.options.${providerId}.${unknown}`, 'this option is not supported for the service');
  }
  return given;
}

/** Usage of images charged per image or by area. */
function piecesUsage(images: readonly MadeImage[]): Usage {
  return { ...inputUsage(0), ...piecesOf(images) };
}

/** Megapixels of 1024 x 1024, rounded up per image. An image of unreadable size counts as one. */
export function piecesOf(images: readonly MadeImage[]): { outputImages: number; outputMegapixels: number } {
  let megapixels = 0;
  for (const { data } of images) {
    const { width, height } = dimensionsOf(data) ?? { width: 1, height: 1 };
    megapixels += Math.ceil((width * height) / (1024 * 1024));
  }
  return { outputImages: images.length, outputMegapixels: megapixels };
}

/** The images of a reply. Images given by URL are fetched first. */
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
    // An image that was not fetched counts as one megapixel.
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

/** Unix seconds; empty for anything else. */
export function timeOf(value: unknown): { created?: number } {
  const known = typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 1e11;
  return known ? { created: value } : {};
}

/** The bytes or URL of an image, under the member names that services use. */
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
