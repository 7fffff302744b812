/**
 * Images and documents for this format. Types are detected from bytes, because labels may be wrong
 * (BerriAI/litellm#34462, openai/openai-agents-js#722, BerriAI/litellm#9798).
 */
import type { FilePart, ImagePart, Source } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { sniffImage, withoutDataUrl } from '../conversation/media-bytes.ts';

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];
const TEXT_TYPE = /^(text\/.*|application\/(json|xml|yaml|x-yaml|javascript))$/;

/** The `source` of an image block. Throws `Uncarried` for a type that the format does not support. */
export function encodeImageSource(part: ImagePart): Fields {
  const source = withoutDataUrl(part.source);
  switch (source.kind) {
    case 'bytes':
      return { type: 'base64', media_type: imageTypeOf(source), data: source.data };
    case 'url':
      return { type: 'url', url: source.url };
    case 'file':
      return fileSource(source, 'image');
    default:
      throw new Uncarried('image', 'an image must be bytes, a URL or a file');
  }
}

/** A document block without its cache mark; an image given as a file becomes an image block. */
export function encodeFile(part: FilePart, parts: (source: Extract<Source, { kind: 'parts' }>) => unknown[]): Fields {
  const source = withoutDataUrl(part.source);
  if (source.kind === 'bytes' && sniffImage(source.data) !== undefined) {
    return { type: 'image', source: encodeImageSource({ type: 'image', source }) };
  }
  return {
    type: 'document',
    source: source.kind === 'parts' ? { type: 'content', content: parts(source) } : documentSource(source),
    ...(part.filename !== undefined && { title: part.filename }),
    ...(part.context !== undefined && { context: part.context }),
    ...(part.citations !== undefined && { citations: { enabled: part.citations } }),
  };
}

function documentSource(source: Exclude<Source, { kind: 'parts' }>): Fields {
  switch (source.kind) {
    case 'url':
      return { type: 'url', url: source.url };
    case 'text':
      return { type: 'text', media_type: 'text/plain', data: source.text };
    case 'file':
      return fileSource(source, 'file');
    case 'bytes': {
      if (source.data.startsWith('JVBERi') || source.mediaType === 'application/pdf') {
        return { type: 'base64', media_type: 'application/pdf', data: source.data };
      }
      if (TEXT_TYPE.test(source.mediaType)) {
        return { type: 'text', media_type: 'text/plain', data: Buffer.from(source.data, 'base64').toString('utf8') };
      }
      throw new Uncarried('file', `the type ${source.mediaType || 'of the file'} is not PDF, text or an image`);
    }
  }
}

function fileSource(source: Extract<Source, { kind: 'file' }>, what: string): Fields {
  if (source.origin === 'messages') return { type: 'file', file_id: source.id };
  throw new Uncarried(what, `the file ${source.id} is stored at another provider`);
}

function imageTypeOf(source: Extract<Source, { kind: 'bytes' }>): string {
  const type = sniffImage(source.data) ?? source.mediaType.toLowerCase();
  if (IMAGE_TYPES.includes(type)) return type;
  throw new Uncarried(
    'image',
    `the type ${type === '' ? 'of the image' : type} is not one of ${IMAGE_TYPES.join(', ')}`,
  );
}
