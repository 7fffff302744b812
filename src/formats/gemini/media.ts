/**
 * Encodes images, documents, audio and video of a request. The type is taken from the bytes first, because labels may
 * be wrong.
 */
import type { AudioPart, FilePart, ImagePart, Source, VideoPart } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { sniffImage, withoutDataUrl } from '../conversation/media-bytes.ts';

const TYPE_BY_ENDING: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  heic: 'image/heic',
  heif: 'image/heif',
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/md',
  html: 'text/html',
  csv: 'text/csv',
  xml: 'text/xml',
  mp3: 'audio/mp3',
  wav: 'audio/wav',
  ogg: 'audio/ogg',
  flac: 'audio/flac',
  aac: 'audio/aac',
  aiff: 'audio/aiff',
  m4a: 'audio/m4a',
  mp4: 'video/mp4',
  mov: 'video/mov',
  mpeg: 'video/mpeg',
  webm: 'video/webm',
};

type Medium = ImagePart | FilePart | AudioPart | VideoPart;

/** Assumed type where the URL does not reveal it. */
const USUAL: Record<Medium['type'], string> = {
  image: 'image/jpeg',
  file: 'application/pdf',
  audio: 'audio/wav',
  video: 'video/mp4',
};

/** Encodes to `inlineData` or `fileData`. Throws `Uncarried` for a source that the service cannot read. */
export function encodeMedium(part: Medium): Fields {
  if (part.source === undefined) throw new Uncarried(part.type, 'it must be inline data or a URL');
  const source = withoutDataUrl(part.source);
  switch (source.kind) {
    case 'bytes':
      return { inlineData: { mimeType: typeOf(part, source), data: source.data } };
    case 'url':
      return { fileData: { mimeType: typeByAddress(part, source.url), fileUri: source.url } };
    case 'file':
      if (source.origin === 'gemini' || /^(https:\/\/|gs:\/\/)/.test(source.id)) {
        const mimeType = source.mediaType ?? typeByAddress(part, source.id);
        return { fileData: { mimeType: SPELLINGS[mimeType] ?? mimeType, fileUri: source.id } };
      }
      throw new Uncarried(part.type, `the file ${source.id} belongs to another provider`);
    default:
      throw new Uncarried(part.type, 'it must be inline data or a URL');
  }
}

function typeOf(part: Medium, source: Extract<Source, { kind: 'bytes' }>): string {
  const sniffed = sniffImage(source.data);
  if (sniffed !== undefined) return sniffed;
  if (source.data.startsWith('JVBERi')) return 'application/pdf';
  const labelled = source.mediaType.toLowerCase();
  const type = CONCRETE.test(labelled) ? (SPELLINGS[labelled] ?? labelled) : byEnding(part);
  if (type === undefined) throw new Uncarried(part.type, 'its type is unknown');
  if (!READABLE.test(type)) throw new Uncarried(part.type, `the provider does not accept the type ${type}`);
  return type;
}

const CONCRETE = /^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/;
const SPELLINGS: Record<string, string> = {
  'audio/mpeg': 'audio/mp3',
  'audio/x-wav': 'audio/wav',
  'image/jpg': 'image/jpeg',
};
const READABLE =
  /^(image|audio|video|text)\/|^application\/(pdf|json|xml|rtf|yaml|x-yaml|javascript|x-javascript|x-python|typescript|$defscript)$/;

function typeByAddress(part: Medium, address: string): string {
  // YouTube URLs have no file extension.
  if (/^https:\/\/(www\.)?(youtube\.com|youtu\.be)\//.test(address)) return 'video/mp4';
  const ending = /\.([A-Za-z0-9]{2,5})(?:[?#]|$)/.exec(address)?.[1]?.toLowerCase();
  return TYPE_BY_ENDING[ending ?? ''] ?? byEnding(part) ?? USUAL[part.type];
}

/** The type by file extension, or by the name of the audio format. */
function byEnding(part: Medium): string | undefined {
  const word =
    part.type === 'audio' ? part.format : part.type === 'file' ? part.filename?.split('.').at(-1) : undefined;
  return word === undefined ? undefined : TYPE_BY_ENDING[word.toLowerCase()];
}

/** URLs that every model can read: Google's file services and YouTube. */
const OWN_ADDRESS =
  /^https:\/\/(generativelanguage\.googleapis\.com|storage\.googleapis\.com|(www\.|m\.)?youtube\.com|youtu\.be)\//;

/**
 * Whether a URL must be replaced by its bytes. Only some models read other URLs, and only if the URL reveals the type.
 */
export function wantsBytes(url: string): boolean {
  return !OWN_ADDRESS.test(url);
}
