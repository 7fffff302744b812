/** Pictures, sound and files of an answer. */
import type { Part } from '../conversation/conversation.ts';
import { type Fields, isFields, textOf } from '../conversation/fields.ts';

/** The part that holds it; undefined for what has no name in the conversation. */
export function mediaPart(part: Fields): Part | undefined {
  const { inlineData, fileData } = part;
  // A sketch on the way to the picture is thinking that only the service can read.
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

/** The chat form's word for the kind of sound; `audio/L16;rate=24000` is plain samples. */
function formatOf(mediaType: string): string {
  if (/^audio\/(l16|pcm)/i.test(mediaType)) return 'pcm16';
  return mediaType.slice('audio/'.length).split(';')[0]!.replace(/^x-/, '');
}

/** Base64 in pieces as pieces that join to valid base64: what is over after three bytes waits for the next one. */
export class Base64Joiner {
  private rest: Buffer = Buffer.alloc(0);

  push(piece: string): string {
    const bytes = Buffer.concat([this.rest, Buffer.from(piece, 'base64')]);
    const whole = bytes.length - (bytes.length % 3);
    this.rest = bytes.subarray(whole);
    return bytes.toString('base64', 0, whole);
  }

  end(): string {
    const last = this.rest.toString('base64');
    this.rest = Buffer.alloc(0);
    return last;
  }
}
