/** The request body of `POST /images`: schema, rules, and the view that adapters read. */
import Type, { type TSchema } from 'typebox';
import { invalidField } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { sniffMediaType } from '../../base/media-type.ts';
import { fieldsOf, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { checkCommon, commonMembers } from '../direct/body.ts';
import { isOfRatio, isOfTier, pixelsOf, RATIOS, type Size, TIER_NAMES, type Tier, tierOf } from './size.ts';

const FORMATS = ['png', 'jpeg', 'webp', 'svg'] as const;
export type OutputFormat = (typeof FORMATS)[number];
export const QUALITIES = ['auto', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type Quality = Exclude<(typeof QUALITIES)[number], 'auto'>;

/** A reference image. Its bytes are fetched before adapters run. */
interface Reference {
  mediaType: string;
  /** Base64. */
  data: string;
}

export interface ImageRequest {
  prompt: string;
  n: number;
  size: Size;
  quality?: Quality;
  background?: 'transparent' | 'opaque';
  format?: OutputFormat;
  compression?: number;
  seed?: number;
  /** Of a stream. */
  partialImages?: number;
  /** The prefix of the stream's event types. Clients of edits expect a prefix of their own. */
  events: 'image_generation' | 'image_edit';
  references: readonly Reference[];
  /** Number of references in the request, including those not fetched yet. */
  referenceCount: number;
  /** Members that only OpenAI's models have, by name. */
  extras: Readonly<Record<string, unknown>>;
  /** `provider.options`: free members by provider slug; only the serving provider gets its own. */
  options: Readonly<Record<string, unknown>>;
}

const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

const MOST_REFERENCES = 16;
const EXTRAS = ['moderation', 'input_fidelity', 'complexity', 'style'];

export const schema: TSchema = Type.Object(
  {
    ...commonMembers,
    model: optional(Type.String({ minLength: 1, description: "Default: the workspace's default image model" })),
    prompt: Type.String({ minLength: 1 }),
    n: optional(Type.Integer({ minimum: 1, maximum: 10, description: 'Upper bound; a reply may have fewer' })),
    aspect_ratio: optional(Type.Enum([...RATIOS, 'auto'])),
    resolution: optional(Type.Enum([...TIER_NAMES])),
    size: optional(Type.String({ description: 'A resolution, or <width>x<height>, which takes precedence' })),
    quality: optional(Type.Enum([...QUALITIES])),
    background: optional(Type.Enum(['auto', 'transparent', 'opaque'])),
    output_format: optional(Type.Enum([...FORMATS])),
    output_compression: optional(Type.Integer({ minimum: 0, maximum: 100 })),
    seed: optional(Type.Integer()),
    input_references: optional(
      Type.Array(
        Type.Object({
          type: Type.Literal('image_url'),
          image_url: Type.Object({ url: Type.String({ description: 'A data URL or an http(s) URL' }) }),
        }),
        { maxItems: MOST_REFERENCES },
      ),
    ),
    stream: optional(Type.Boolean({ description: 'Send partial images as events if the provider streams' })),
    partial_images: optional(
      Type.Integer({ minimum: 0, maximum: 3, description: 'Of a stream, where the provider can choose; default 2' }),
    ),
  },
  { $id: 'ImageRequest' },
);

/** Rules that the schema cannot express. */
export function check(document: JsonDocument): void {
  checkCommon(document);
  const word = (name: string) => textOrUndefined(document.member(name));
  checkSize(word('size'), word('resolution'), word('aspect_ratio'));
  const format = word('output_format');
  if (word('background') === 'transparent' && format !== undefined && format !== 'png' && format !== 'webp') {
    throw invalidField('background', `cannot be transparent in ${format}: output_format must be png or webp`);
  }
  if (word('response_format') === 'url') {
    throw invalidField('response_format', 'must be b64_json: images are not stored, so they have no URL');
  }
  for (const name of ['mask', 'image']) {
    const value = document.structure[name];
    if (value !== undefined && value !== null) {
      throw invalidField(name, 'is not supported; send reference images in input_references');
    }
  }
  references(document).forEach((url, index) => {
    checkReference(url, pathOf(index));
  });
  const options = fieldsOf(document.member('provider'))['options'];
  if (options === undefined || options === null) return;
  for (const [slug, value] of Object.entries(fieldsOf(options))) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw invalidField(`provider.options.${slug}`, 'must be an object');
    }
  }
}

function checkSize(size: string | undefined, resolution: string | undefined, ratio: string | undefined): void {
  if (size === undefined || size === 'auto') return;
  const tier = tierOf(size);
  if (tier !== undefined) {
    if (resolution !== undefined && resolution !== tier) {
      throw invalidField('size', `is ${tier} but resolution is ${resolution}: they must match`);
    }
    return;
  }
  const pixels = pixelsOf(size);
  if (pixels === undefined) {
    throw invalidField(
      'size',
      `must be one of ${TIER_NAMES.join(', ')}, or <width>x<height> with sides of 16 to 16384`,
    );
  }
  if (ratio !== undefined && ratio !== 'auto' && !isOfRatio(pixels, ratio)) {
    throw invalidField('aspect_ratio', `is ${ratio}, but size is ${size}: they must match`);
  }
  if (resolution !== undefined && !isOfTier(pixels, resolution as Tier)) {
    throw invalidField('resolution', `is ${resolution}, but size is ${size}: they must match`);
  }
}

function checkReference(url: string, path: string): void {
  if (/^https?:\/\/[^\s]/i.test(url)) return;
  const data = dataOf(url);
  if (data === undefined) throw invalidField(path, 'must be a base64 data URL or an http(s) URL');
  if (typeOf(data) === undefined) throw invalidField(path, 'does not contain an image');
}

function pathOf(index: number): string {
  return `input_references[${index}].image_url.url`;
}

function references(document: JsonDocument): string[] {
  return listOf(document.member('input_references')).map((item) =>
    textOf(fieldsOf(fieldsOf(item)['image_url'])['url']),
  );
}

/** The base64 text of a data URL. */
function dataOf(url: string): string | undefined {
  const head = /^data:[\w.+-]*\/?[\w.+*-]*(?:;[\w=.-]+)*;base64,/i.exec(url.slice(0, 256));
  const data = head === null ? undefined : url.slice(head[0].length);
  return data !== undefined && /^[A-Za-z0-9+/]{8,}={0,2}$/.test(data) ? data : undefined;
}

/** The type from the bytes, because the label of a data URL may be wrong. */
function typeOf(data: string): string | undefined {
  const type = sniffMediaType(Buffer.from(data.slice(0, 700), 'base64'));
  return type?.startsWith('image/') ? type : undefined;
}

/** URLs to fetch, with their field paths. */
export function remoteReferences(document: JsonDocument): Map<string, string> {
  const remote = new Map<string, string>();
  references(document).forEach((url, index) => {
    if (/^https?:/i.test(url) && !remote.has(url)) remote.set(url, pathOf(index));
  });
  return remote;
}

export function imagesIn(document: JsonDocument): number {
  return listOf(document.structure['input_references']).length;
}

/** @param fetched references given by URL; missing ones are left out */
export function decode(document: JsonDocument, fetched: ReadonlyMap<string, Reference> = new Map()): ImageRequest {
  const word = (name: string) => {
    const text = textOrUndefined(document.member(name));
    return text === 'auto' ? undefined : text;
  };
  const number = (name: string) => {
    const value = document.structure[name];
    return typeof value === 'number' ? value : undefined;
  };
  const size = word('size');
  const pixels = size === undefined ? undefined : pixelsOf(size);
  const tier = (size === undefined ? undefined : tierOf(size)) ?? (word('resolution') as Tier | undefined);
  const ratio = word('aspect_ratio');
  const [quality, background, format] = [word('quality'), word('background'), word('output_format')];
  const [compression, seed] = [number('output_compression'), number('seed')];
  const partialImages = number('partial_images');
  return {
    prompt: textOf(document.member('prompt')),
    n: number('n') ?? 1,
    events: 'image_generation',
    size:
      pixels !== undefined
        ? { pixels }
        : { ...(ratio !== undefined && { ratio }), ...(tier !== undefined && { tier }) },
    ...(quality !== undefined && { quality: quality as Quality }),
    ...(background !== undefined && { background: background as 'transparent' | 'opaque' }),
    ...(format !== undefined && { format: format as OutputFormat }),
    ...(compression !== undefined && { compression }),
    ...(seed !== undefined && { seed }),
    ...(partialImages !== undefined && { partialImages }),
    references: references(document).flatMap((url) => {
      const data = dataOf(url);
      const given = data === undefined ? fetched.get(url) : { mediaType: typeOf(data) ?? 'image/png', data };
      return given === undefined ? [] : [given];
    }),
    referenceCount: imagesIn(document),
    extras: Object.fromEntries(
      EXTRAS.flatMap((name) => {
        const value = document.member(name);
        return value === undefined || value === null ? [] : [[name, value]];
      }),
    ),
    options: fieldsOf(fieldsOf(document.member('provider'))['options']),
  };
}

export function dataUrl({ mediaType, data }: Reference): string {
  return `data:${mediaType};base64,${data}`;
}
