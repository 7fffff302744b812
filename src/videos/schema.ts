/** Wire schemas of video jobs and models. */
import { Type } from 'typebox';
import { nullable } from '../http/contract.ts';

export const VideoParams = Type.Object({ jobId: Type.String({ minLength: 1, maxLength: 100 }) });
export const ContentQuery = Type.Object({
  index: Type.Optional(Type.Integer({ minimum: 0, description: 'A job makes one video, with the index 0' })),
  variant: Type.Optional(Type.Literal('video', { description: 'There are no thumbnails and no spritesheets' })),
});

export const RemixRequest = Type.Object(
  { prompt: Type.String({ minLength: 1 }) },
  { $id: 'VideoRemixRequest', additionalProperties: false },
);

export const VideoReply = Type.Object(
  {
    id: Type.String({ description: '`vid_...`' }),
    object: Type.Literal('video'),
    status: Type.Enum(['in_progress', 'completed', 'failed', 'expired']),
    polling_url: Type.String(),
    generation_id: Type.String({ description: 'For `GET /generation`' }),
    model: Type.String(),
    created_at: Type.Integer({ description: 'Unix seconds' }),
    expires_at: Type.Integer({ description: 'Unix seconds' }),
    progress: Type.Integer({ minimum: 0, maximum: 100 }),
    error: Type.Optional(Type.String()),
    unsigned_urls: Type.Optional(Type.Array(Type.String())),
    usage: Type.Optional(Type.Object({ cost: nullable(Type.Number()), is_byok: Type.Boolean() })),
  },
  { $id: 'Video' },
);

export const ListQuery = Type.Object({
  after: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'The id of a job' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
  order: Type.Optional(Type.Enum(['asc', 'desc'], { default: 'desc' })),
});

export const VideoListReply = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(VideoReply),
    first_id: nullable(Type.String()),
    last_id: nullable(Type.String()),
    has_more: Type.Boolean(),
  },
  { $id: 'VideoList' },
);

export const VideoDeleted = Type.Object(
  { id: Type.String(), object: Type.Literal('video.deleted'), deleted: Type.Literal(true) },
  { $id: 'VideoDeleted' },
);

const listed = (of: ReturnType<typeof Type.String> | ReturnType<typeof Type.Integer>) => nullable(Type.Array(of));

export const VideoModelsReply = Type.Object(
  {
    data: Type.Array(
      Type.Object({
        id: Type.String(),
        canonical_slug: Type.String(),
        name: Type.String(),
        created: Type.Integer(),
        allowed_passthrough_parameters: Type.Array(Type.String()),
        pricing_skus: nullable(Type.Record(Type.String(), Type.String())),
        creativity: listed(Type.Integer()),
        generate_audio: nullable(Type.Boolean()),
        seed: nullable(Type.Boolean()),
        supported_aspect_ratios: listed(Type.String()),
        supported_durations: listed(Type.Integer()),
        supported_frame_images: listed(Type.String()),
        supported_resolutions: listed(Type.String()),
        supported_sizes: listed(Type.String()),
        upscale_factor: nullable(Type.Object({})),
      }),
    ),
  },
  { $id: 'VideoModels' },
);
