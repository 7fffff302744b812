/** Videos: the public format and the adapters of services that make them as jobs. */
import { encodeFailure } from '../chat/encode-failure.ts';
import { listOf } from '../conversation/fields.ts';
import { askedOf, loggedPrompt } from '../direct/body.ts';
import { type Adapter, type DirectFormat, estimatedTokens, inputUsage } from '../direct/index.ts';
import { textsWith } from '../texts/index.ts';
import type { MadeVideo } from './jobs.ts';
import { check, decode, imagesIn, schema, type VideoRequest } from './request.ts';

export { videoFormSchema, videoOfForm } from './form.ts';
export { openaiVideos, publicVideos } from './jobs.ts';
export { ASPECT_RATIOS, RESOLUTIONS } from './request.ts';

export type VideoAdapter = Adapter<VideoRequest, MadeVideo>;

/** Of a request without `duration`. */
const LONGEST_USUAL_SECONDS = 15;
/** The same if it continues a video, whose length counts too. */
const LONGEST_CONTINUED_SECONDS = 60;
const USUAL_SECONDS = 5;
/** The most tokens that models count for a second of video. */
const TOKENS_PER_SECOND = 50_000;

export const video: DirectFormat<VideoRequest, MadeVideo> = {
  id: 'video',
  schema,
  check,
  texts: textsWith(),
  loggedContent: (document) => loggedPrompt(document, 'prompt'),
  facts: (document) => askedOf(document, { images: imagesIn(document), documents: 0 }),
  longest: (document) => Buffer.byteLength(String(document.structure['prompt'])),
  decode,
  most({ prompt, duration, previousId, references, extras }) {
    const usual = previousId === undefined ? LONGEST_USUAL_SECONDS : LONGEST_CONTINUED_SECONDS;
    const seconds = duration ?? usual;
    return {
      promptTokens: Buffer.byteLength(prompt) + 256,
      outputTokens: seconds * TOKENS_PER_SECOND,
      inputImages: references.length + listOf(extras['frame_images']).length,
      outputSeconds: seconds,
    };
  },
  likely: ({ prompt, duration = USUAL_SECONDS }) => ({
    ...inputUsage(estimatedTokens(Buffer.byteLength(prompt))),
    outputSeconds: duration,
  }),
  encodeReply: ({ bytes }) => bytes,
  mediaType: ({ mediaType }) => mediaType,
  encodeFailure,
};
