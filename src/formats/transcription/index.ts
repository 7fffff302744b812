/** Speech to text: the public format and the adapters of its services. */
import { encodeFailure } from '../chat/encode-failure.ts';
import { textOrUndefined } from '../conversation/fields.ts';
import { askedOf } from '../direct/body.ts';
import { errorEvent } from '../direct/events.ts';
import { type Adapter, type DirectFormat, inputUsage } from '../direct/index.ts';
import { textsWith } from '../texts/index.ts';
import { doneEvents, encodeReply, screened, type TranscriptionAnswer } from './reply.ts';
import { check, decode, schema, type TranscriptionRequest } from './request.ts';

export { deepgramTranscription } from './deepgram.ts';
export { elevenLabsTranscription } from './eleven-labs.ts';
export { transcriptionOfForm } from './form.ts';
export { openaiTranscription } from './openai.ts';
export { publicTranscription } from './public.ts';
export { TranscriptionReply } from './reply.ts';
export { formSchema } from './request.ts';

export type TranscriptionAdapter = Adapter<TranscriptionRequest, TranscriptionAnswer>;

/** Bytes per second of the most compressed speech. */
const LEAST_BYTES_PER_SECOND = 750;
const USUAL_BYTES_PER_SECOND = 8_000;
/** The most tokens that models count for a second of audio, and write for it. */
const MOST_AUDIO_TOKENS = 32;
const MOST_TEXT_TOKENS = 10;
const USUAL_AUDIO_TOKENS = 10;
const USUAL_TEXT_TOKENS = 4;
/** Services bill at least this much for a shorter clip. */
const LEAST_BILLED_SECONDS = 10;

/** In the language of the audio. */
export const transcription = formatFor(false);
/** In English. */
export const translation = formatFor(true);

function formatFor(translates: boolean): DirectFormat<TranscriptionRequest, TranscriptionAnswer> {
  return {
    id: 'transcription',
    schema,
    check,
    texts: textsWith({ control: 'language response_format timestamp_granularities include' }),
    loggedContent: (document) => ({ prompt: textOrUndefined(document.member('prompt')) ?? '' }),
    facts: (document) => askedOf(document, { images: 0, documents: 0 }, document.structure['stream'] === true),
    // The audio is not read as text.
    longest: (document) => Buffer.byteLength(String(document.structure['prompt'] ?? '')),
    decode: (document) => decode(document, translates),
    most({ audio, seconds, prompt = '' }) {
      const most = Math.ceil(Math.max(seconds ?? audio.length / LEAST_BYTES_PER_SECOND, LEAST_BILLED_SECONDS));
      return {
        promptTokens: most * MOST_AUDIO_TOKENS + Buffer.byteLength(prompt) + 64,
        outputTokens: most * MOST_TEXT_TOKENS + 256,
        inputSeconds: most,
      };
    },
    likely({ audio, seconds }) {
      const likely = Math.max(1, Math.ceil(seconds ?? audio.length / USUAL_BYTES_PER_SECOND));
      const input = likely * USUAL_AUDIO_TOKENS;
      return {
        ...inputUsage(input),
        ...{ inputAudio: input, output: likely * USUAL_TEXT_TOKENS, inputSeconds: likely },
      };
    },
    encodeReply,
    mediaType: (_answer, { replyFormat }) =>
      ['text', 'srt', 'vtt'].includes(replyFormat) ? 'text/plain; charset=utf-8' : 'application/json; charset=utf-8',
    encodeFailure,
    textOf: ({ text }) => text,
    screened,
    events: {
      whole: true,
      end: (answer, _request, _stamp, closing) => doneEvents(answer, closing),
      failure: errorEvent,
    },
  };
}
