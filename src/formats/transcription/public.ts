/** Transcription at another gateway with the public format. */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import type { TranscriptionAdapter } from './index.ts';
import { readTranscription, refuseExtras } from './read.ts';

export const publicTranscription: TranscriptionAdapter = {
  start(request, target) {
    const { audio, filename, language, temperature, needs, options } = request;
    refuseExtras(request);
    const timed = needs.segments || needs.words;
    const members = {
      model: target.model,
      input_audio: { data: audio.toString('base64'), format: filename.slice('audio.'.length) },
      ...(language !== undefined && { language }),
      ...(temperature !== undefined && { temperature }),
      ...(timed && {
        response_format: 'verbose_json',
        timestamp_granularities: [...(needs.segments ? ['segment'] : []), ...(needs.words ? ['word'] : [])],
      }),
      ...(Object.keys(options).length > 0 && { provider: { options } }),
      user: target.user,
    };
    return { call: { path: '/audio/transcriptions', body: stringifyJson(members) }, read: readTranscription };
  },
  decodeFailure,
};
