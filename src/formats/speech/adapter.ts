/** Shared by speech adapters: choosing a format, and usage. */
import { Uncarried } from '../conversation/losses.ts';
import type { ByteReply, Reply, Step } from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import { AUDIO_TYPES, type AudioFormat, type SpeechRequest } from './request.ts';

/** Audio in one piece. Most services stream it instead, and its bytes are passed on. */
export interface Spoken {
  audio: Buffer;
  mediaType: string;
}

/** Of `pcm`: 24,000 samples of two bytes. */
const PCM_BYTES_PER_SECOND = 48_000;

/**
 * The requested format; without one the first that the service makes.
 * @throws Uncarried
 */
export function formatFor({ format }: SpeechRequest, formats: readonly AudioFormat[]): AudioFormat {
  if (format === undefined) return formats[0]!;
  if (formats.includes(format)) return format;
  throw new Uncarried('response_format', `the service supports ${formats.join(', ')}, not ${format}`);
}

/** @throws Uncarried for a speed that the service does not have */
export function speedWithin({ speed }: SpeechRequest, least: number, most: number): number | undefined {
  if (speed === undefined || (speed >= least && speed <= most)) return speed;
  throw new Uncarried('speed', `the service supports speeds from ${least} to ${most}`);
}

/** @throws Uncarried for members that only some services have */
export function refuseExtras({ instructions, references }: SpeechRequest, takesInstructions = false): void {
  if (references.length > 0) throw new Uncarried('input_references', 'the service does not imitate voices');
  if (instructions !== undefined && !takesInstructions) {
    throw new Uncarried('instructions', 'the model takes no instructions');
  }
}

/** How a reply of bytes is passed on. Of the usage it shows the duration, if the samples are not compressed. */
export function spokenBytes({ characters }: SpeechRequest, format: AudioFormat): ByteReply {
  return {
    mediaType: AUDIO_TYPES[format],
    known: (bytes) => ({
      inputCharacters: characters,
      ...(format === 'pcm' && { outputSeconds: Math.ceil(bytes / PCM_BYTES_PER_SECOND) }),
    }),
  };
}

/** A reply that is neither audio nor an error status: it reports a failure, or is malformed. */
export function readNoAudio(reply: Reply): Step<Spoken> {
  const read = readObject(reply);
  return 'failure' in read ? read : { failure: malformed('JSON instead of audio') };
}
