/** Text to speech: the public format and the adapters of speech services. */
import { encodeFailure } from '../chat/encode-failure.ts';
import { askedOf } from '../direct/body.ts';
import { type Adapter, type DirectFormat, estimatedTokens, inputUsage } from '../direct/index.ts';
import { textsWith } from '../texts/index.ts';
import type { Spoken } from './adapter.ts';
import { check, decode, type SpeechRequest, schema } from './request.ts';

export { deepgramSpeech } from './deepgram.ts';
export { elevenLabsSpeech } from './eleven-labs.ts';
export { openaiSpeech, publicSpeech } from './openai.ts';

export type SpeechAdapter = Adapter<SpeechRequest, Spoken>;

/** Upper bound of the seconds that one character takes at speed 1, such as a digit of a long number. */
const SECONDS_PER_CHARACTER = 0.8;
const USUAL_CHARACTERS_PER_SECOND = 15;
/** Tokens of generated audio, by the models that are billed by token. */
const TOKENS_PER_SECOND = 25;
const PAUSES_SECONDS = 10;

export const speech: DirectFormat<SpeechRequest, Spoken> = {
  id: 'speech',
  schema,
  check,
  texts: textsWith({ control: 'voice response_format stream_format' }),
  loggedContent: (document) => ({ prompt: String(document.member('input')) }),
  // The reply is a stream of bytes whatever the client says.
  facts: (document) => askedOf(document, { images: 0, documents: 0 }, true),
  streamsBytes: true,
  decode,
  most(request) {
    const seconds = Math.ceil((request.characters * SECONDS_PER_CHARACTER + PAUSES_SECONDS) / slowest(request));
    return {
      promptTokens: textBytes(request) + 64,
      outputTokens: seconds * TOKENS_PER_SECOND,
      inputCharacters: request.characters,
      outputSeconds: seconds,
    };
  },
  likely(request) {
    const seconds = Math.ceil(request.characters / USUAL_CHARACTERS_PER_SECOND / (request.speed ?? 1));
    const output = seconds * TOKENS_PER_SECOND;
    return {
      ...inputUsage(estimatedTokens(textBytes(request))),
      ...{ output, outputAudio: output, inputCharacters: request.characters, outputSeconds: seconds },
    };
  },
  encodeReply: ({ audio }) => audio,
  mediaType: ({ mediaType }) => mediaType,
  encodeFailure,
};

function textBytes({ input, instructions = '' }: SpeechRequest): number {
  return Buffer.byteLength(input) + Buffer.byteLength(instructions);
}

function slowest({ speed = 1 }: SpeechRequest): number {
  return Math.min(speed, 1);
}
