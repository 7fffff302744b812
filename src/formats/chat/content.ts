/** Content parts of chat messages, decoded and encoded. */
import type { CacheMark, Extras, FilePart, Part, Source } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, nonEmptyText, restOf, textOf } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';
import { Uncarried } from '../conversation/losses.ts';
import { plainDocument } from '../conversation/plain-document.ts';
import { decodeThinking } from './details.ts';

const BASE = ['type', 'cache_control', 'prompt_cache_breakpoint'];
const KNOWN: Record<string, ReadonlySet<string>> = {
  text: new Set([...BASE, 'text']),
  image_url: new Set([...BASE, 'image_url']),
  input_audio: new Set([...BASE, 'input_audio']),
  video_url: new Set([...BASE, 'video_url']),
  input_video: new Set([...BASE, 'video_url']),
  file: new Set([...BASE, 'file']),
  refusal: new Set([...BASE, 'refusal']),
};

/** Decodes content: a text, a list of parts, or (some services) an object, which is kept as its JSON text. */
export function decodeContent(content: unknown): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  if (Array.isArray(content)) return content.flatMap(decodePart);
  return fieldsOrUndefined(content) === undefined ? [] : [{ type: 'text', text: JSON.stringify(content) }];
}

function decodePart(value: unknown): Part[] {
  if (typeof value === 'string') return [{ type: 'text', text: value }];
  const part = fieldsOrUndefined(value);
  if (part === undefined) return [];
  const type = textOf(part['type']);
  if (type === 'thinking') return decodeThinking(part);
  const decoded = decodeKnown(type, part) ?? { type: 'opaque', origin: 'chat', value: part };
  if (decoded.type === 'opaque') return [decoded];
  const cache = decodeCache(part);
  const others = restOf(part, KNOWN[type]!);
  if (cache !== undefined) decoded.cache = cache;
  if (others !== undefined) decoded.extras = { chat: others };
  return [decoded];
}

function decodeKnown(type: string, part: Fields): Part | undefined {
  switch (type) {
    case 'text':
      return { type: 'text', text: textOf(part['text']) };
    case 'refusal':
      return { type: 'refusal', text: textOf(part['refusal']) };
    case 'image_url': {
      const image = fieldsOrUndefined(part['image_url']) ?? { url: part['image_url'] };
      const source = decodeUrl(textOf(image['url']));
      // A PDF is a document, even in an image part (BerriAI/litellm#9798).
      if (isPdf(source)) return { type: 'file', source };
      const detail = nonEmptyText(image['detail']);
      return { type: 'image', source, ...(detail !== undefined && { detail }) };
    }
    case 'input_audio': {
      const audio = fieldsOf(part['input_audio']);
      const format = textOf(audio['format']);
      return {
        type: 'audio',
        source: { kind: 'bytes', mediaType: `audio/${format}`, data: textOf(audio['data']) },
        format,
      };
    }
    case 'video_url':
    case 'input_video': {
      const video = fieldsOrUndefined(part['video_url']) ?? { url: part['video_url'] };
      const processing = nonEmptyText(video['processing']);
      return {
        type: 'video',
        source: decodeUrl(textOf(video['url'])),
        ...(processing !== undefined && { processing }),
      };
    }
    case 'file':
      return decodeFile(fieldsOf(part['file']));
    default:
      return undefined;
  }
}

function decodeFile(file: Fields): FilePart {
  const id = nonEmptyText(file['file_id']);
  const filename = nonEmptyText(file['filename']);
  return {
    type: 'file',
    source: id !== undefined ? { kind: 'file', id, origin: 'chat' } : decodeUrl(textOf(file['file_data'])),
    ...(filename !== undefined && { filename }),
  };
}

function isPdf(source: Source): boolean {
  return source.kind === 'bytes' && (source.mediaType === 'application/pdf' || source.data.startsWith('JVBERi'));
}

/** Splits a `data:` URL into media type (without parameters) and base64; other URLs stay URLs. */
export function decodeUrl(url: string): Source {
  const match = /^data:([^;,]*)([^,]*),/is.exec(url);
  if (match === null) return { kind: 'url', url };
  const mediaType = match[1]!.toLowerCase();
  const body = url.slice(match[0].length);
  if (/;\s*base64$/i.test(match[2]!)) return { kind: 'bytes', mediaType, data: body };
  return { kind: 'bytes', mediaType, data: Buffer.from(percentDecoded(body), 'utf8').toString('base64') };
}

function percentDecoded(body: string): string {
  try {
    return decodeURIComponent(body);
  } catch {
    return body;
  }
}

/** Decodes `cache_control`, or its equivalent `prompt_cache_breakpoint`. */
export function decodeCache(holder: Fields): CacheMark | undefined {
  const mark = fieldsOrUndefined(holder['cache_control']);
  if (mark !== undefined) {
    const ttl = mark['ttl'];
    return ttl === '5m' || ttl === '1h' ? { ttl } : {};
  }
  return fieldsOrUndefined(holder['prompt_cache_breakpoint']) === undefined ? undefined : {};
}

export function encodeCache(mark: CacheMark): Fields {
  return { type: 'ephemeral', ...mark };
}

/** Options for encoding parts. */
export interface ContentRules {
  /** Whether the upstream accepts `cache_control`; otherwise marks are left out. */
  cacheControl: boolean;
  losses: Losses;
}

/** The shortest encoding of the parts: a text if one plain text suffices, otherwise a list. */
export function encodeContent(parts: readonly Part[], rules: ContentRules): string | Fields[] {
  const first = parts[0];
  if (first === undefined) return '';
  const items = parts.flatMap((part) => encodePart(part, rules));
  const only = items[0];
  if (items.length === 1 && only !== undefined && Object.keys(only).length === 2 && nonEmptyText(only['text'])) {
    return textOf(only['text']);
  }
  return items;
}

function encodePart(part: Part, rules: ContentRules): Fields[] {
  const items = encodeKnown(part, rules);
  const last = items.at(-1);
  if (part.type === 'opaque' || last === undefined) return items;
  if (part.cache !== undefined && rules.cacheControl) last['cache_control'] = encodeCache(part.cache);
  const extras = chatExtras(part.extras);
  if (extras !== undefined) items[0] = { ...items[0], ...extras };
  return items;
}

function chatExtras(extras: Extras | undefined): Fields | undefined {
  return extras?.chat;
}

function encodeKnown(part: Part, rules: ContentRules): Fields[] {
  switch (part.type) {
    case 'text':
      return [{ type: 'text', text: part.text }];
    case 'refusal':
      return [{ type: 'refusal', refusal: part.text }];
    case 'image':
      return [
        {
          type: 'image_url',
          image_url: { url: encodeUrl(part.source, 'image'), ...(part.detail && { detail: part.detail }) },
        },
      ];
    case 'audio': {
      if (part.source?.kind !== 'bytes') throw new Uncarried('audio', 'chat supports only audio given as bytes');
      const format = part.format ?? part.source.mediaType.replace(/^audio\/(x-)?/, '');
      return [{ type: 'input_audio', input_audio: { data: part.source.data, format } }];
    }
    case 'video': {
      const url = encodeUrl(part.source, 'video');
      return [{ type: 'video_url', video_url: { url, ...(part.processing && { processing: part.processing }) } }];
    }
    case 'file':
      return encodeFile(part, rules);
    case 'opaque':
      if (part.origin !== 'chat') throw new Uncarried(`${part.origin} block`, 'only its own format can carry it');
      return [part.value as Fields];
    default:
      throw new Uncarried(part.type, 'chat messages do not support it as content');
  }
}

function encodeFile(part: FilePart, rules: ContentRules): Fields[] {
  const { source } = part;
  if (part.citations === true)
    rules.losses.drop('citations', 'chat completions cannot request citations of a document');
  const plain = plainDocument(part);
  if (plain !== undefined) return plain.flatMap((inner) => encodePart(inner, rules));
  const context: Fields[] = part.context === undefined ? [] : [{ type: 'text', text: part.context }];
  const filename = part.filename === undefined ? undefined : { filename: part.filename };
  if (source.kind === 'file' && source.origin === 'chat')
    return [...context, { type: 'file', file: { file_id: source.id, ...filename } }];
  return [...context, { type: 'file', file: { file_data: encodeUrl(source, 'file'), ...filename } }];
}

export function encodeUrl(source: Source, what: string): string {
  if (source.kind === 'url') return source.url;
  if (source.kind === 'bytes') return `data:${source.mediaType};base64,${source.data}`;
  throw new Uncarried(what, 'a chat message cannot reference a file of another format');
}

/** The joined text of a list of parts, for members that do not accept a list. */
export function joinedText(parts: readonly Part[]): string {
  let joined = '';
  for (const part of parts) if (part.type === 'text') joined += part.text;
  return joined;
}
