/** The answer of `POST /images` (spec.md, "Image response"; wire/images.md), whole and as events. */
import Type from 'typebox';
import type { GatewayError } from '../../base/errors.ts';
import { stringifyJson } from '../../base/json.ts';
import { sniffMediaType } from '../../base/media-type.ts';
import { encodeUsage } from '../chat/usage.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import type { Closing, Stamp } from '../conversation/format.ts';

/** `data` is base64; of an SVG it is that of the UTF-8 text. */
export interface MadeImage {
  data: string;
  mediaType?: string;
}

export interface ImageAnswer {
  images: readonly MadeImage[];
  /** Unix seconds; absent: ours. */
  created?: number;
}

export function encodeReply({ images, created }: ImageAnswer, stamp: Stamp, closing: Closing): string {
  return stringifyJson({
    created: created ?? stamp.created,
    data: images.map(({ data, mediaType }) => ({ b64_json: data, ...(mediaType && { media_type: mediaType }) })),
    ...usageOf(closing),
    ...(closing.metadata && { [closing.metadata.key]: closing.metadata.value }),
  });
}

function usageOf(closing: Closing): { usage?: unknown } {
  return closing.usage === undefined ? {} : { usage: encodeUsage(closing.usage, closing.cost) };
}

/** A picture on its way. */
export function partialEvent(data: string, index: number): string {
  return event({ type: 'image_generation.partial_image', b64_json: data, partial_image_index: index });
}

/** What closes a stream: one event for each image, the last with the figures, and the end marker. */
export function completedEvents({ images, created }: ImageAnswer, stamp: Stamp, closing: Closing): string {
  const texts = images.map(({ data, mediaType }, index) =>
    event({
      type: 'image_generation.completed',
      b64_json: data,
      created: created ?? stamp.created,
      ...(mediaType && { media_type: mediaType }),
      ...(index === images.length - 1 && {
        ...usageOf(closing),
        ...(closing.metadata && { [closing.metadata.key]: closing.metadata.value }),
      }),
    }),
  );
  return `${texts.join('')}data: [DONE]\n\n`;
}

export function errorEvent(error: GatewayError): string {
  return event({
    type: 'error',
    error: { code: String(error.status), message: error.message, param: error.details.path ?? null, type: error.type },
  });
}

function event(value: unknown): string {
  return `data: ${stringifyJson(value)}\n\n`;
}

/** An image with the type that its bytes name; what they do not name is what was told. */
export function made(data: string, told?: unknown): MadeImage {
  const mediaType =
    sniffMediaType(Buffer.from(data.slice(0, 700), 'base64')) ??
    (typeof told === 'string' && /^image\/[\w.+-]+$/.test(told) ? told : undefined);
  return { data, ...(mediaType !== undefined && { mediaType }) };
}

/** A good status without a picture is none (bug 96), and no picture is charged. */
export function empty(): UpstreamFailure {
  return { kind: 'empty', status: 502, message: 'the upstream answered without an image' };
}

/** Services charge nothing for what they filter. */
export function filtered(message: string): UpstreamFailure {
  return { kind: 'content_filter', status: 400, message };
}

const Count = Type.Integer({ minimum: 0 });

/** For the OpenAPI document. */
export const ImageReply = Type.Object(
  {
    created: Type.Integer({ description: 'Unix seconds' }),
    data: Type.Array(
      Type.Object({
        b64_json: Type.String({ description: 'The bytes of the image; of svg those of its UTF-8 text' }),
        media_type: Type.Optional(Type.String()),
      }),
    ),
    usage: Type.Optional(
      Type.Object(
        {
          prompt_tokens: Count,
          completion_tokens: Count,
          total_tokens: Count,
          cost: Type.Optional(Type.Number({ description: 'Absent when the model has no price' })),
        },
        { additionalProperties: true },
      ),
    ),
  },
  { additionalProperties: true, $id: 'Images' },
);
