/** Transcription of Deepgram (developers.deepgram.com/reference/speech-to-text/listen-pre-recorded). */
import { countOf, fieldsOf, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { deepgramFailure } from '../direct/deepgram-failure.ts';
import type { Reply, Step } from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import { optionsFor } from '../direct/options.ts';
import type { TranscriptionAdapter } from './index.ts';
import { refuseExtras, secondsOf, secondsUsage, segmentsOf } from './read.ts';
import type { TranscriptionAnswer, Word } from './reply.ts';

const OPTIONS = [
  'diarize',
  'keyterm',
  'punctuate',
  'smart_format',
  'numerals',
  'filler_words',
  'profanity_filter',
  'multichannel',
];

export const deepgramTranscription: TranscriptionAdapter = {
  start(request, target) {
    const { audio, mediaType, language } = request;
    refuseExtras(request);
    const query = new URLSearchParams({
      model: target.model,
      smart_format: 'true',
      ...(language === undefined ? { detect_language: 'true' } : { language }),
    });
    for (const [name, value] of Object.entries(optionsFor(request, target, OPTIONS))) {
      query.delete(name);
      for (const each of [value].flat()) query.append(name, String(each));
    }
    return { call: { path: `/listen?${query}`, contentType: mediaType, body: audio }, read };
  },
  decodeFailure: deepgramFailure,
};

function read(reply: Reply): Step<TranscriptionAnswer> {
  const object = readObject(reply);
  if ('failure' in object) return object;
  const { metadata, results } = object.value;
  const channel = fieldsOf(listOf(fieldsOf(results)['channels'])[0]);
  const best = fieldsOf(listOf(channel['alternatives'])[0]);
  const { transcript, confidence } = best;
  if (typeof transcript !== 'string') return { failure: malformed('no transcript') };
  const { duration: told, request_id: id } = fieldsOf(metadata);
  const duration = secondsOf(told);
  const language = textOrUndefined(channel['detected_language']);
  const upstreamId = textOrUndefined(id);
  const words = listOf(best['words']).map(wordOf);
  return {
    answer: {
      text: transcript,
      ...(language !== undefined && { language }),
      ...(duration !== undefined && { duration }),
      ...(typeof confidence === 'number' && { confidence }),
      ...{ words, segments: segmentsOf(words) },
    },
    ...(duration !== undefined && { usage: secondsUsage(duration) }),
    ...(upstreamId !== undefined && { upstreamId }),
  };
}

function wordOf(item: unknown): Word {
  const { word, punctuated_word: punctuated, start, end, confidence, speaker } = fieldsOf(item);
  return {
    word: textOf(punctuated) || textOf(word),
    ...{ start: secondsOf(start) ?? 0, end: secondsOf(end) ?? 0 },
    ...(typeof confidence === 'number' && { confidence }),
    ...(typeof speaker === 'number' && { speaker: countOf(speaker) }),
  };
}
