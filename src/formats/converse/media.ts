/** Encodes images, documents, audio and video: inline bytes or an object in S3. The service fetches no URLs. */
import type { AudioPart, FilePart, ImagePart, Source, VideoPart } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { DOCUMENT_FORMATS, sniffImage, withoutDataUrl } from '../conversation/media-bytes.ts';
import type { DocumentNames } from './document-names.ts';

const IMAGE_FORMATS = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpeg'],
  ['image/jpg', 'jpeg'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
]);

const ENDINGS = new Set(DOCUMENT_FORMATS.values());
/** Text types without a format of their own are sent as plain text. */
const TEXT_TYPE = /^(text\/.*|application\/(json|xml|yaml|x-yaml|javascript))$/;

const VIDEO_FORMATS = new Map([
  ['video/x-matroska', 'mkv'],
  ['video/quicktime', 'mov'],
  ['video/mp4', 'mp4'],
  ['video/webm', 'webm'],
  ['video/x-flv', 'flv'],
  ['video/mpeg', 'mpeg'],
  ['video/x-ms-wmv', 'wmv'],
  ['video/3gpp', 'three_gp'],
]);
const VIDEO_ENDINGS = new Set([...VIDEO_FORMATS.values(), 'mpg']);

const AUDIO_FORMATS = new Set('mp3 opus wav aac flac mp4 ogg mkv mka x-aac m4a mpeg mpga pcm webm'.split(' '));

/** An image block. Throws `Uncarried` for unsupported types and sources. */
export function encodeImage(part: ImagePart): Fields {
  const source = withoutDataUrl(part.source);
  const type = source.kind === 'bytes' ? (sniffImage(source.data) ?? source.mediaType.toLowerCase()) : undefined;
  const format = type === undefined ? IMAGE_FORMATS.get(`image/${endingOf(source)}`) : IMAGE_FORMATS.get(type);
  const place = placeOf(source, 'image');
  if (format === undefined) throw new Uncarried('image', 'it must be PNG, JPEG, GIF or WebP');
  return { image: { format, source: place } };
}

/** A document block, or an image block if the file is an image. */
export function encodeFile(part: FilePart, names: DocumentNames): Fields {
  const source = withoutDataUrl(part.source);
  if (source.kind === 'bytes' && sniffImage(source.data) !== undefined) return encodeImage({ type: 'image', source });
  const inner = documentSource(source);
  const context = [part.address, part.context].filter((text) => text !== undefined && text !== '').join('\n');
  return {
    document: {
      format: source.kind === 'parts' ? 'txt' : documentFormat(source, part.filename),
      name: names.take(part.filename),
      source: inner,
      ...(context !== '' && { context }),
      ...(part.citations !== undefined && { citations: { enabled: part.citations } }),
    },
  };
}

export function encodeVideo(part: VideoPart): Fields {
  const source = withoutDataUrl(part.source);
  const ending = endingOf(source);
  const format =
    source.kind === 'bytes'
      ? VIDEO_FORMATS.get(source.mediaType.toLowerCase())
      : VIDEO_ENDINGS.has(ending)
        ? ending
        : undefined;
  const place = placeOf(source, 'video');
  if (format === undefined) throw new Uncarried('video', 'the converse format does not support this video type');
  return { video: { format, source: place } };
}

export function encodeAudio(part: AudioPart): Fields {
  const source = part.source === undefined ? undefined : withoutDataUrl(part.source);
  const format = part.format ?? (source?.kind === 'bytes' ? source.mediaType.replace(/^audio\//, '') : undefined);
  if (source === undefined || format === undefined || !AUDIO_FORMATS.has(format)) {
    throw new Uncarried('audio', `the converse format does not support audio of type ${format ?? 'unknown'}`);
  }
  return { audio: { format, source: placeOf(source, 'audio') } };
}

function documentSource(source: Source): Fields {
  if (source.kind === 'text') return { bytes: Buffer.from(source.text, 'utf8').toString('base64') };
  if (source.kind !== 'parts') return placeOf(source, 'file');
  const content = source.parts.map((part) => {
    if (part.type === 'text') return { text: part.text };
    throw new Uncarried('file', 'a document in parts can hold only text');
  });
  return { content };
}

function documentFormat(source: Source, filename: string | undefined): string {
  if (source.kind === 'text') return DOCUMENT_FORMATS.get(source.mediaType.toLowerCase()) ?? 'txt';
  if (source.kind === 'bytes') {
    if (source.data.startsWith('JVBERi')) return 'pdf';
    const type = source.mediaType.toLowerCase();
    const known = DOCUMENT_FORMATS.get(type);
    // Clients send text/plain as a fallback, so the file extension is more specific.
    if (known !== undefined && known !== 'txt') return known;
    const ending = filename?.slice(filename.lastIndexOf('.') + 1).toLowerCase() ?? '';
    if (ENDINGS.has(ending)) return ending;
    if (TEXT_TYPE.test(type)) return 'txt';
  } else if (ENDINGS.has(endingOf(source))) return endingOf(source);
  throw new Uncarried('file', 'the converse format does not support this file type');
}

function placeOf(source: Source, what: string): Fields {
  if (source.kind === 'bytes') return { bytes: source.data };
  if (source.kind === 'url' && source.url.startsWith('s3://')) return { s3Location: { uri: source.url } };
  if (source.kind === 'url') throw new Uncarried(`${what} by URL`, 'the converse format requires inline bytes');
  throw new Uncarried(what, `the converse format cannot hold a source of kind ${source.kind}`);
}

function endingOf(source: Source): string {
  if (source.kind !== 'url') return '';
  const ending = source.url.slice(source.url.lastIndexOf('.') + 1).toLowerCase();
  return ending === 'jpg' ? 'jpeg' : ending;
}
