/** Images: the public format and the adapters of image services. */
import Type from 'typebox';
import { encodeFailure } from '../chat/encode-failure.ts';
import { askedOf, loggedPrompt } from '../direct/body.ts';
import { errorEvent } from '../direct/events.ts';
import { type DirectFormat, estimatedTokens, inputUsage } from '../direct/index.ts';
import { textsWith } from '../texts/index.ts';
import { charged, type ImageAdapter } from './adapter.ts';
import { checkEdited } from './form.ts';
import { completedEvents, encodeReply, type ImageAnswer } from './reply.ts';
import { check, decode, type ImageRequest, imagesIn, remoteReferences, schema } from './request.ts';
import { mostMegapixels } from './size.ts';

export type { ImageAbilities, ImageAdapter } from './adapter.ts';
export { bedrockImages } from './bedrock.ts';
export { blackForestImages } from './black-forest.ts';
export { falImages } from './fal.ts';
export { editOfForm, variationOfForm } from './form.ts';
export { googleImages } from './google.ts';
export { deployedImages, openaiImages } from './openai.ts';
export { publicImages } from './public.ts';
export { recraftImages } from './recraft.ts';
export { ImageReply } from './reply.ts';
export { stabilityImages } from './stability.ts';
export { xaiImages } from './xai.ts';

/** Most tokens that a service counts for one reference. */
const REFERENCE_TOKENS = 8_192;
/** Tokens of the most expensive models per megapixel at their best quality, plus reasoning and drafts. */
const TOKENS_PER_MEGAPIXEL = 6_500;
const BESIDE_TOKENS = 8_192;
/** An ordinary image, for services that report no usage. */
const USUAL_TOKENS = 1_300;

export const image: DirectFormat<ImageRequest, ImageAnswer> = {
  id: 'image',
  schema,
  check,
  texts: textsWith(),
  loggedContent: (document) => loggedPrompt(document, 'prompt'),
  facts: (document) =>
    askedOf(document, { images: imagesIn(document), documents: 0 }, document.structure['stream'] === true),
  decode,
  remote: remoteReferences,
  most({ prompt, n, size, quality, referenceCount }) {
    const megapixels = mostMegapixels(size);
    const better = quality === 'xhigh' || quality === 'max' ? 2 : 1;
    return {
      promptTokens: Buffer.byteLength(prompt) + 256 + referenceCount * REFERENCE_TOKENS,
      outputTokens: n * (Math.ceil(megapixels * TOKENS_PER_MEGAPIXEL) * better + BESIDE_TOKENS),
      inputImages: referenceCount,
      outputImages: n,
      outputMegapixels: n * Math.ceil((megapixels * 1e6) / (1024 * 1024)),
    };
  },
  likely({ prompt, n, size, referenceCount }) {
    const output = n * USUAL_TOKENS;
    return {
      ...inputUsage(estimatedTokens(Buffer.byteLength(prompt)) + referenceCount * 1_000),
      output,
      outputImage: output,
      outputImages: n,
      outputMegapixels:
        n * Math.ceil((mostMegapixels({ ...size, tier: size.tier ?? '1K' }) * 1e6) / (1.2 * 1024 * 1024)),
    };
  },
  /** Keys that image price lists distinguish. */
  priceWords(request, adapter, model) {
    const { size, quality } = charged(request, (adapter as ImageAdapter).abilities(model));
    const { pixels, tier } = size;
    return [
      quality ?? 'auto',
      ...(tier === undefined ? [] : [tier]),
      ...(pixels === undefined ? [] : [`${pixels.width}x${pixels.height}`]),
    ];
  },
  encodeReply: (answer, _request, stamp, closing) => encodeReply(answer, stamp, closing),
  encodeFailure,
  events: {
    end: completedEvents,
    failure: errorEvent,
  },
};

/** Edits and variations: images that are made of others. */
export const imageEdit: DirectFormat<ImageRequest, ImageAnswer> = {
  ...image,
  check(document) {
    image.check(document);
    checkEdited(document);
  },
  decode: (document, fetched) => ({ ...decode(document, fetched), events: 'image_edit' }),
};

/** A form of OpenAI's clients. */
export const imageFormSchema = Type.Object(
  {
    image: Type.Unsafe({ type: 'array', items: { type: 'string', format: 'binary' } }),
    prompt: Type.Optional(Type.String()),
  },
  { additionalProperties: true, $id: 'ImageForm' },
);
