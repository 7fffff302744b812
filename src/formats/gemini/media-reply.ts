/** Images, audio and files of a reply. */
import type { Part } from '../conversation/conversation.ts';
import { type Fields, isFields, textOf } from '../conversation/fields.ts';

/** The media part; undefined for parts without media. */
export function mediaPart(part: Fields): Part | undefined {
  const { inlineData, fileData } = part;
  // Drafts made on the way to an image are reasoning that only the service can read.
  if (part['thought'] === true) return undefined;
  if (isFields(inlineData)) {
    const mediaType = textOf(inlineData['mimeType']);
    const source = { kind: 'bytes' as const, mediaType, data: textOf(inlineData['data']) };
    if (mediaType.startsWith('image/')) return { type: 'image', source };
    if (mediaType.startsWith('video/')) return { type: 'video', source };
    return mediaType.startsWith('audio/')
      ? { type: 'audio', source, format: formatOf(mediaType) }
      : { type: 'file', source };
  }
  if (isFields(fileData)) return { type: 'file', source: { kind: 'url', url: textOf(fileData['fileUri']) } };
  return undefined;
}

/** Chat's name of the audio format; `audio/L16;rate=24000` is raw samples. */
function formatOf(mediaType: string): string {
  if (/^audio\/(l16|pcm)/i.test(mediaType)) return 'pcm16';
  return mediaType.slice('audio/'.length).split(';')[0]!.replace(/^x-/, '');
}

/** Joins base64 pieces into valid base64: bytes beyond a multiple of three wait for the next piece. */
export class Base64Joiner {
  #rest: Buffer = Buffer.alloc(0);

  push(piece: string): string {
    const bytes = Buffer.concat([this.#rest, Buffer.from(piece, 'base64')]);
    const whole = bytes.length - (bytes.length % 3);
    this.#rest = bytes.subarray(whole);
    return bytes.toString('base64', 0, whole);
  }

  end(): string {
    const last = this.#rest.toString('base64');
    this.#rest = Buffer.alloc(0);
    return last;
  }
}
