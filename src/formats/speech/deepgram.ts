/** Speech of Deepgram (developers.deepgram.com/reference/text-to-speech): the voice is part of the model's name. */
import { stringifyJson } from '../../base/json.ts';
import { Uncarried } from '../conversation/losses.ts';
import { deepgramFailure } from '../direct/deepgram-failure.ts';
import { optionsFor } from '../direct/options.ts';
import { formatFor, readNoAudio, refuseExtras, speedWithin, spokenBytes } from './adapter.ts';
import type { SpeechAdapter } from './index.ts';
import type { AudioFormat } from './request.ts';

const ENCODINGS: Partial<Record<AudioFormat, Readonly<Record<string, string>>>> = {
  pcm: { encoding: 'linear16', sample_rate: '24000', container: 'none' },
  mp3: { encoding: 'mp3' },
  wav: { encoding: 'linear16', sample_rate: '24000', container: 'wav' },
  opus: { encoding: 'opus', container: 'ogg' },
  aac: { encoding: 'aac' },
  flac: { encoding: 'flac' },
};
const FORMATS = Object.keys(ENCODINGS) as AudioFormat[];

export const deepgramSpeech: SpeechAdapter = {
  start(request, target) {
    refuseExtras(request);
    const format = formatFor(request, FORMATS);
    const speed = speedWithin(request, 0.7, 1.5);
    const query = new URLSearchParams({
      model: voiced(target.model, request.voice),
      ...ENCODINGS[format],
      ...(speed !== undefined && { speed: String(speed) }),
    });
    for (const [name, value] of Object.entries(optionsFor(request, target, ['bit_rate', 'mip_opt_out', 'tag']))) {
      query.set(name, String(value));
    }
    return {
      call: { path: `/speak?${query}`, body: stringifyJson({ text: request.input }) },
      bytes: spokenBytes(request, format),
      read: readNoAudio,
    };
  },
  decodeFailure: deepgramFailure,
};

/** `aura-2` with the voice `thalia` is `aura-2-thalia-en`. @throws Uncarried */
function voiced(model: string, voice: string | undefined): string {
  const named = /^aura(?:-\d+)?-[a-z]+-[a-z]{2}$/;
  if (voice !== undefined && named.test(voice)) return voice;
  if (named.test(model)) {
    if (voice === undefined || model.split('-').includes(voice)) return model;
    throw new Uncarried('voice', `the voice of this model is fixed by its name, ${model}`);
  }
  if (voice === undefined) throw new Uncarried('voice', 'the service needs a voice, such as thalia');
  return `${model}-${voice}-en`;
}
