/** Speech of ElevenLabs (elevenlabs.io/docs/api-reference/text-to-speech/stream). The path has the voice. */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import { fieldsOf } from '../conversation/fields.ts';
import { optionsFor } from '../direct/options.ts';
import { formatFor, readNoAudio, refuseExtras, speedWithin, spokenBytes } from './adapter.ts';
import type { SpeechAdapter } from './index.ts';
import type { AudioFormat } from './request.ts';

const OUTPUT_FORMATS: Partial<Record<AudioFormat, string>> = {
  pcm: 'pcm_24000',
  mp3: 'mp3_44100_128',
  opus: 'opus_48000_128',
};
const FORMATS = Object.keys(OUTPUT_FORMATS) as AudioFormat[];
/** The voice of the service's examples. */
const VOICE = 'JBFqnCBsd6RMkjVDRZzb';
const OPTIONS = [
  'language_code',
  'voice_settings',
  'pronunciation_dictionary_locators',
  'seed',
  'previous_text',
  'next_text',
  'apply_text_normalization',
];

export const elevenLabsSpeech: SpeechAdapter = {
  start(request, target) {
    refuseExtras(request);
    const format = formatFor(request, FORMATS);
    const speed = speedWithin(request, 0.7, 1.2);
    const options = optionsFor(request, target, OPTIONS);
    const members = {
      ...options,
      text: request.input,
      model_id: target.model,
      ...(speed !== undefined && { voice_settings: { ...fieldsOf(options['voice_settings']), speed } }),
    };
    const voice = encodeURIComponent(request.voice ?? VOICE);
    return {
      call: {
        path: `/text-to-speech/${voice}/stream?output_format=${OUTPUT_FORMATS[format]}`,
        body: stringifyJson(members),
      },
      bytes: spokenBytes(request, format),
      read: readNoAudio,
    };
  },
  decodeFailure,
};
