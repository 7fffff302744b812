/** Media of a request as content parts of chat. */
import { invalidField } from '../../base/errors.ts';
import { type Fields, fieldsOf, isFields, nonEmptyText, textOf } from '../conversation/fields.ts';
import { member } from './names.ts';

const AUDIO_FORMATS: Readonly<Record<string, string>> = { mpeg: 'mp3', 'x-wav': 'wav', wave: 'wav', 'x-m4a': 'm4a' };

export function dataUrl(inline: Fields): string {
  return `data:${textOf(member(inline, 'mimeType'))};base64,${textOf(inline['data'])}`;
}

export function mediaPart(part: Fields, at: string): Fields {
  const inline = member(part, 'inlineData');
  if (isFields(inline)) {
    const type = typeOf(inline, `${at}.inlineData`);
    if (typeof inline['data'] !== 'string') throw invalidField(`${at}.inlineData.data`, 'must be base64 text');
    if (type.startsWith('audio/')) {
      const format = type.slice('audio/'.length);
      return { type: 'input_audio', input_audio: { data: inline['data'], format: AUDIO_FORMATS[format] ?? format } };
    }
    return urlPart(type, dataUrl(inline), nonEmptyText(member(inline, 'displayName')));
  }
  const file = member(part, 'fileData');
  if (isFields(file)) {
    const url = textOf(member(file, 'fileUri'));
    if (!/^https?:\/\//.test(url)) throw invalidField(`${at}.fileData.fileUri`, 'must be an http or https URL');
    const type = textOf(member(file, 'mimeType'));
    if (type.startsWith('audio/')) throw invalidField(`${at}.fileData`, 'audio must be sent as inlineData');
    // Without a type it is a video of YouTube.
    return urlPart(type || 'video/', url, nonEmptyText(member(fieldsOf(file), 'displayName')));
  }
  throw invalidField(at, 'must have text, inlineData, fileData or functionResponse');
}

function typeOf(inline: Fields, at: string): string {
  const type = textOf(member(inline, 'mimeType')).toLowerCase();
  if (!/^[a-z]+\/[a-z0-9.+-]+$/.test(type.split(';', 1)[0]!))
    throw invalidField(`${at}.mimeType`, 'must be a media type');
  return type.split(';', 1)[0]!;
}

function urlPart(type: string, url: string, filename: string | undefined): Fields {
  if (type.startsWith('image/')) return { type: 'image_url', image_url: { url } };
  if (type.startsWith('video/')) return { type: 'video_url', video_url: { url } };
  return { type: 'file', file: { file_data: url, filename: filename ?? `file.${type.split('/').at(-1)}` } };
}
