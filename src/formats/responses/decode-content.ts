/** Decodes the content parts of messages, replies and tool results in the responses format. */
import { decodeUrl } from '../chat/content.ts';
import type { CacheMark, Citation, FilePart, Part, Source } from '../conversation/conversation.ts';
import {
  countOf,
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  restOf,
  textOf,
  textOrUndefined,
} from '../conversation/fields.ts';

/** Marks an opaque part that belongs to a message's content rather than to the item list. */
export const IN_CONTENT = 'in_content';

const BASE = ['type', 'cache_control', 'prompt_cache_breakpoint'];

/**
 * Members that decoding maps, by part type. Log probabilities of earlier replies are dropped: no format sends them
 * back.
 */
const KNOWN = new Map<unknown, readonly string[]>(
  Object.entries({
    input_text: [...BASE, 'text'],
    output_text: [...BASE, 'text', 'annotations', 'logprobs'],
    text: [...BASE, 'text'],
    refusal: [...BASE, 'refusal'],
    input_image: [...BASE, 'image_url', 'file_id', 'detail'],
    input_file: [...BASE, 'file_data', 'file_id', 'file_url', 'filename'],
    input_audio: [...BASE, 'input_audio'],
    input_video: [...BASE, 'video_url', 'processing'],
  }),
);

/** Content is a string or a list of parts. Unknown parts become opaque and keep every member. */
export function decodeContent(content: unknown): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return listOf(content).map((entry) => decodePart(fieldsOf(entry)));
}

function decodePart(content: Fields): Part {
  const part = decodeKnown(content);
  if (part === undefined) {
    return { type: 'opaque', origin: 'responses', value: content, extras: { responses: { [IN_CONTENT]: true } } };
  }
  const cache = decodeCache(content);
  if (cache !== undefined) part.cache = cache;
  const rest = restOf(content, KNOWN.get(content['type']) ?? []);
  if (rest !== undefined) part.extras = { responses: rest };
  return part;
}

function decodeKnown(content: Fields): Part | undefined {
  switch (content['type']) {
    case 'input_text':
    case 'output_text':
    case 'text': {
      const citations = listOf(content['annotations']).map(decodeAnnotation);
      return { type: 'text', text: textOf(content['text']), ...(citations.length > 0 && { citations }) };
    }
    case 'refusal':
      return { type: 'refusal', text: textOf(content['refusal']) };
    case 'input_image': {
      const source = mediaSource(content, 'image_url');
      const detail = textOrUndefined(content['detail']);
      return source && { type: 'image', source, ...(detail !== undefined && { detail }) };
    }
    case 'input_file':
      return decodeFile(content);
    case 'input_audio': {
      const audio = fieldsOf(content['input_audio']);
      const format = textOf(audio['format']);
      const data = textOf(audio['data']);
      return { type: 'audio', source: { kind: 'bytes', mediaType: `audio/${format}`, data }, format };
    }
    case 'input_video': {
      const processing = textOrUndefined(content['processing']);
      const source = decodeUrl(textOf(content['video_url']));
      return { type: 'video', source, ...(processing !== undefined && { processing }) };
    }
    default:
      return undefined;
  }
}

/** The URL or data URL in `member`, else the file id. */
function mediaSource(content: Fields, member: string): Source | undefined {
  const url = textOrUndefined(content[member]);
  if (url !== undefined) return decodeUrl(url);
  const id = textOrUndefined(content['file_id']);
  return id === undefined ? undefined : { kind: 'file', id, origin: 'responses' };
}

function decodeFile(content: Fields): FilePart | undefined {
  const filename = textOrUndefined(content['filename']);
  const data = textOrUndefined(content['file_data']);
  const source = data === undefined ? mediaSource(content, 'file_url') : fileBytes(data);
  return source && { type: 'file', source, ...(filename !== undefined && { filename }) };
}

/** `file_data` should be a data URL. Some clients send bare base64; its first bytes then give the media type. */
function fileBytes(data: string): Source {
  if (/^(data:|https?:)/i.test(data)) return decodeUrl(data);
  const mediaType = data.startsWith('JVBERi') ? 'application/pdf' : 'application/octet-stream';
  return { kind: 'bytes', mediaType, data };
}

/** `cache_control`, or its synonym `prompt_cache_breakpoint`. */
export function decodeCache(holder: Fields): CacheMark | undefined {
  const mark = holder['cache_control'];
  if (isFields(mark)) {
    const { ttl } = mark;
    return ttl === '5m' || ttl === '1h' ? { ttl } : {};
  }
  return isFields(holder['prompt_cache_breakpoint']) ? {} : undefined;
}

export function decodeAnnotation(value: unknown): Citation {
  const annotation = fieldsOf(value);
  const citation: Citation = { native: { origin: 'responses', value } };
  if (annotation['type'] !== 'url_citation') return citation;
  if (typeof annotation['url'] === 'string') citation.url = annotation['url'];
  if (typeof annotation['title'] === 'string') citation.title = annotation['title'];
  if (typeof annotation['content'] === 'string') citation.citedText = annotation['content'];
  citation.start = countOf(annotation['start_index']);
  citation.end = countOf(annotation['end_index']);
  return citation;
}

/**
 * The annotation for a citation; undefined if this format cannot express it. `length` is the length of the cited text.
 */
export function encodeAnnotation(citation: Citation, length: number): unknown {
  if (citation.native?.origin === 'responses') return citation.native.value;
  if (citation.url === undefined) return undefined;
  return {
    type: 'url_citation',
    url: citation.url,
    title: citation.title ?? '',
    ...(citation.citedText !== undefined && { content: citation.citedText }),
    start_index: citation.start ?? 0,
    end_index: citation.end ?? length,
  };
}
