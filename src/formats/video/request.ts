/** The request body of `POST /videos`: schema, rules, and the view that adapters read. */
import Type, { type TSchema } from 'typebox';
import { invalidField } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { type Fields, fieldsOf, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { checkCommon, commonMembers } from '../direct/body.ts';

export const ASPECT_RATIOS = ['16:9', '9:16', '1:1', '4:3', '3:4', '3:2', '2:3', '21:9', '9:21'] as const;
export const RESOLUTIONS = ['360p', '480p', '720p', '768p', '1080p', '1K', '2K', '4K'] as const;

export interface VideoRequest {
  prompt: string;
  /** Seconds. */
  duration?: number;
  /** `<width>x<height>` */
  size?: string;
  aspectRatio?: string;
  resolution?: string;
  seed?: number;
  /** The service's id of the job that this one edits or extends. */
  previousId?: string;
  /** Data URLs of images. */
  references: readonly string[];
  /** Members that only some services have, by name. */
  extras: Readonly<Fields>;
  /** `provider.options`: free members by provider slug; only the serving provider gets its own. */
  options: Readonly<Record<string, unknown>>;
}

const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

const MOST_REFERENCES = 16;
const LONGEST_SECONDS = 600;
const EXTRAS = ['frame_images', 'generate_audio', 'creativity', 'upscale_factor'];
const SIZE = /^[1-9]\d{1,4}x[1-9]\d{1,4}$/;
const DATA_URL = /^data:image\/[\w.+-]+;base64,[A-Za-z0-9+/]+={0,2}$/;

export const schema: TSchema = Type.Object(
  {
    ...commonMembers,
    prompt: Type.String({ minLength: 1 }),
    duration: optional(Type.Integer({ minimum: 1, maximum: LONGEST_SECONDS, description: 'Seconds' })),
    size: optional(Type.String({ description: '<width>x<height>' })),
    aspect_ratio: optional(Type.Enum([...ASPECT_RATIOS])),
    resolution: optional(Type.Enum([...RESOLUTIONS])),
    seed: optional(Type.Integer()),
    generate_audio: optional(Type.Boolean()),
    previous_job_id: optional(
      Type.String({ minLength: 1, maxLength: 100, description: 'A completed job of the workspace to edit or extend' }),
    ),
    callback_url: optional(Type.String({ description: 'An https URL that gets an event when the job has ended' })),
    creativity: optional(Type.Integer()),
    upscale_factor: optional(Type.Number({ exclusiveMinimum: 0 })),
    input_references: optional(
      Type.Array(
        Type.Object({
          type: Type.Literal('image_url'),
          image_url: Type.Object({ url: Type.String({ description: 'A data URL' }) }),
        }),
        { maxItems: MOST_REFERENCES },
      ),
    ),
    frame_images: optional(
      Type.Array(
        Type.Object({
          type: Type.Literal('image_url'),
          image_url: Type.Object({ url: Type.String({ description: 'A data URL' }) }),
          frame_type: Type.Enum(['first_frame', 'last_frame']),
        }),
        { maxItems: 2 },
      ),
    ),
  },
  { $id: 'VideoRequest' },
);

/** Members without effect that would change the video or its price. */
const REFUSED = {
  seconds: 'exists in forms only; use duration',
  input_reference: 'exists in forms only; use input_references',
};

/** Rules that the schema cannot express. */
export function check(document: JsonDocument): void {
  checkCommon(document);
  for (const [name, problem] of Object.entries(REFUSED)) {
    if ((document.structure[name] ?? null) !== null) throw invalidField(name, problem);
  }
  const size = textOrUndefined(document.structure['size']);
  if (size !== undefined && !SIZE.test(size)) throw invalidField('size', 'must be <width>x<height>');
  for (const name of IMAGE_LISTS) {
    urlsIn(document, name).forEach((url, index) => {
      if (!DATA_URL.test(url)) {
        throw invalidField(`${name}[${index}].image_url.url`, 'must be a base64 data URL of an image');
      }
    });
  }
  const frames = listOf(document.structure['frame_images']).map((frame) => fieldsOf(frame)['frame_type']);
  if (new Set(frames).size < frames.length) throw invalidField('frame_images', 'names the same frame twice');
}

const IMAGE_LISTS = ['input_references', 'frame_images'] as const;

function urlsIn(document: JsonDocument, name: (typeof IMAGE_LISTS)[number]): string[] {
  return listOf(document.member(name)).map((item) => textOf(fieldsOf(fieldsOf(item)['image_url'])['url']));
}

/** Images that the request brings: references and frames. */
export function imagesIn(document: JsonDocument): number {
  return IMAGE_LISTS.reduce((sum, name) => sum + listOf(document.structure[name]).length, 0);
}

export function decode(document: JsonDocument): VideoRequest {
  const word = (name: string) => textOrUndefined(document.member(name));
  const { duration, seed } = document.structure;
  const [size, aspectRatio, resolution] = [word('size'), word('aspect_ratio'), word('resolution')];
  const previousId = word('previous_job_id');
  return {
    prompt: textOf(document.member('prompt')),
    ...(typeof duration === 'number' && { duration }),
    ...(size !== undefined && { size }),
    ...(aspectRatio !== undefined && { aspectRatio }),
    ...(resolution !== undefined && { resolution }),
    ...(typeof seed === 'number' && { seed }),
    ...(previousId !== undefined && { previousId }),
    references: urlsIn(document, 'input_references'),
    extras: Object.fromEntries(
      EXTRAS.flatMap((name) => {
        const value = document.member(name);
        return value === undefined || value === null ? [] : [[name, value]];
      }),
    ),
    options: fieldsOf(fieldsOf(document.member('provider'))['options']),
  };
}
