/** Transcription of ElevenLabs (elevenlabs.io/docs/api-reference/speech-to-text/convert). */
import { decodeFailure } from '../chat/failure.ts';
import { fieldsOf, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import type { Reply, Step } from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import { encodeMultipart } from '../direct/multipart.ts';
import { optionsFor } from '../direct/options.ts';
import type { TranscriptionAdapter } from './index.ts';
import { refuseExtras, secondsOf, secondsUsage, segmentsOf } from './read.ts';
import type { TranscriptionAnswer, Word } from './reply.ts';

const OPTIONS = ['diarize', 'num_speakers', 'tag_audio_events', 'seed'];

export const elevenLabsTranscription: TranscriptionAdapter = {
  start(request, target) {
    const { audio, mediaType, filename, language, temperature } = request;
    refuseExtras(request);
    const options = Object.entries(optionsFor(request, target, OPTIONS));
    const fields = {
      ...Object.fromEntries(options.map(([name, value]) => [name, String(value)])),
      model_id: target.model,
      timestamps_granularity: 'word',
      ...(language !== undefined && { language_code: language }),
      ...(temperature !== undefined && { temperature: String(temperature) }),
    };
    const { contentType, body } = encodeMultipart(fields, [{ name: 'file', filename, mediaType, bytes: audio }]);
    return { call: { path: '/speech-to-text', contentType, body }, read: (reply) => read(reply, request.seconds) };
  },
  decodeFailure,
};

/** @param seconds of the audio, which not every reply has */
function read(reply: Reply, seconds: number | undefined): Step<TranscriptionAnswer> {
  const object = readObject(reply);
  if ('failure' in object) return object;
  const { text, language_code: code, language_probability: probability, words: list } = object.value;
  if (typeof text !== 'string') return { failure: malformed('no text') };
  const language = textOrUndefined(code);
  const duration = secondsOf(object.value['audio_duration_secs']) ?? seconds;
  const words = listOf(list)
    .map(fieldsOf)
    .filter(({ type }) => type === undefined || type === 'word')
    .map(wordOf);
  return {
    answer: {
      text,
      ...(language !== undefined && { language }),
      ...(duration !== undefined && { duration }),
      ...(typeof probability === 'number' && { confidence: probability }),
      ...{ words, segments: segmentsOf(words) },
    },
    ...(duration !== undefined && { usage: secondsUsage(duration) }),
  };
}

function wordOf({ text, start, end, speaker_id: speaker }: Record<string, unknown>): Word {
  const number = /^speaker_(\d{1,4})$/.exec(textOf(speaker))?.[1];
  return {
    word: textOf(text),
    ...{ start: secondsOf(start) ?? 0, end: secondsOf(end) ?? 0 },
    ...(number !== undefined && { speaker: Number(number) }),
  };
}
