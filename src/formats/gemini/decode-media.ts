/** Media of a client's request. */
import { invalidField } from '../../base/errors.ts';
import type { Part } from '../conversation/conversation.ts';
import { type Fields, isFields, nonEmptyText, textOf } from '../conversation/fields.ts';
import { imageFault } from '../conversation/media-bytes.ts';
import { storedFileId } from './file-words.ts';
import { member, otherMembers } from './names.ts';

const AUDIO_FORMATS: Readonly<Record<string, string>> = { mpeg: 'mp3', 'x-wav': 'wav', wave: 'wav', 'x-m4a': 'm4a' };
const KNOWN = new Set(['inlineData', 'fileData', 'thoughtSignature']);
const MEDIA_TYPE = /^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/;

/** Undefined for a part without media. @throws GatewayError 400 with the path of the invalid field */
export function decodeMedium(part: Fields, at: string): Part | undefined {
  const medium = inlineMedium(part, at) ?? fileMedium(part, at);
  const extras = medium && otherMembers(part, KNOWN);
  return extras === undefined ? medium : { ...medium!, extras: { gemini: extras } };
}

function inlineMedium(part: Fields, at: string): Part | undefined {
  const inline = member(part, 'inlineData');
  if (inline === undefined) return undefined;
  if (!isFields(inline)) throw invalidField(`${at}.inlineData`, 'must be an object');
  const given = textOf(member(inline, 'mimeType'));
  const [mediaType = ''] = given.toLowerCase().split(';', 1);
  if (!MEDIA_TYPE.test(mediaType)) throw invalidField(`${at}.inlineData.mimeType`, 'must be a media type');
  const { data } = inline;
  if (typeof data !== 'string') throw invalidField(`${at}.inlineData.data`, 'must be base64 text');
  const fault = imageFault(mediaType, data);
  if (fault !== undefined) throw invalidField(`${at}.inlineData.data`, fault);
  const source = { kind: 'bytes' as const, mediaType, data };
  if (mediaType.startsWith('image/')) return { type: 'image', source };
  if (mediaType.startsWith('video/')) return { type: 'video', source };
  if (mediaType.startsWith('audio/')) {
    const format = mediaType.slice('audio/'.length);
    // The parameters of raw samples are part of their type.
    return {
      type: 'audio',
      source: { ...source, mediaType: /l16|pcm/.test(format) ? given : mediaType },
      format: AUDIO_FORMATS[format] ?? format,
    };
  }
  const filename = nonEmptyText(member(inline, 'displayName'));
  return { type: 'file', source, filename: filename ?? `file.${mediaType.split('/').at(-1)}` };
}

function fileMedium(part: Fields, at: string): Part | undefined {
  const file = member(part, 'fileData');
  if (file === undefined) return undefined;
  if (!isFields(file)) throw invalidField(`${at}.fileData`, 'must be an object');
  const url = textOf(member(file, 'fileUri'));
  const stored = storedFileId(url);
  // The file itself says what it is.
  if (stored !== undefined) return { type: 'file', source: { kind: 'file', id: stored, origin: 'gemini' } };
  // Addresses that a provider may read; never `file:` and the like.
  if (!/^(https?|gs):\/\/[^\s]/i.test(url)) {
    throw invalidField(
      `${at}.fileData.fileUri`,
      'must be an http, https or gs URL, or the URI of a file of this gateway',
    );
  }
  const source = { kind: 'url' as const, url };
  const type = textOf(member(file, 'mimeType')).toLowerCase();
  if (type.startsWith('image/')) return { type: 'image', source };
  if (type.startsWith('audio/')) return { type: 'audio', source, format: type.slice('audio/'.length) };
  // Without a type it is a video of YouTube.
  if (type === '' || type.startsWith('video/')) return { type: 'video', source };
  const filename = nonEmptyText(member(file, 'displayName'));
  return { type: 'file', source, filename: filename ?? `file.${type.split('/').at(-1)}` };
}
