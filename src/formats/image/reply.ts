/** Encodes the reply of `POST /images`, complete and as events. */
import Type from 'typebox';
import { stringifyJson } from '../../base/json.ts';
import { sniffMediaType } from '../../base/media-type.ts';
import { encodeUsage } from '../chat/usage.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import type { Closing, Stamp } from '../conversation/format.ts';
import { event } from '../direct/events.ts';
import type { ImageRequest } from './request.ts';

/** `data` is base64; for an SVG, of its UTF-8 text. */
export interface MadeImage {
  data: string;
  mediaType?: string;
}

export interface ImageAnswer {
  images: readonly MadeImage[];
  /** Unix seconds; absent: the gateway's time. */
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

/** The event of a partial image. */
export function partialEvent(data: string, index: number, events: ImageRequest['events']): string {
  return event({ type: `${events}.partial_image`, b64_json: data, partial_image_index: index });
}

/** Ends a stream: one event per image, the last with usage and cost, then the end marker. */
export function completedEvents(
  { images, created }: ImageAnswer,
  { events }: ImageRequest,
  stamp: Stamp,
  closing: Closing,
): string {
  const texts = images.map(({ data, mediaType }, index) =>
    event({
      type: `${events}.completed`,
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

/** An image with the type found in its bytes, else the reported type. */
export function made(data: string, told?: unknown): MadeImage {
  const mediaType =
    sniffMediaType(Buffer.from(data.slice(0, 700), 'base64')) ??
    (typeof told === 'string' && /^image\/[\w.+-]+$/.test(told) ? told : undefined);
  return { data, ...(mediaType !== undefined && { mediaType }) };
}

/** A good status without an image is a failure, and nothing is charged. */
export function empty(): UpstreamFailure {
  return { kind: 'empty', status: 502, message: 'the upstream answered without an image' };
}

/** Services do not charge for filtered images. */
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
        b64_json: Type.String({ description: 'Base64 bytes of the image; for SVG, of its UTF-8 text' }),
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
