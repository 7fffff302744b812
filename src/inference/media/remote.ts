/**
 * Finds the media that a conversation references by URL, and replaces URLs and ids of stored files with their content.
 * Pure.
 */
import type { Conversation, Message, Part, Source } from '../../formats/conversation/conversation.ts';
import type { MediumKind } from '../../formats/conversation/format.ts';

type Wants = (kind: MediumKind, url: string) => boolean;
/** Replaces a URL, or the id of a stored file. */
export interface Substitute {
  source: Source;
  /** The new kind of the part; absent: it does not change. */
  kind?: 'image' | 'audio' | 'file';
  /** For a file without a name in the request. */
  filename?: string;
}

/** By URL or id. */
export type Fetched = ReadonlyMap<string, Substitute>;

/** A medium that a conversation references by URL. */
export interface RemoteMedium {
  /** Of the first part that uses it. */
  kind: MediumKind;
  /** The number of parts that use it. */
  times: number;
}

/** The URLs that `wants` selects, each once, in order. */
export function remoteMedia(conversation: Conversation, wants: Wants): Map<string, RemoteMedium> {
  const found = new Map<string, RemoteMedium>();
  const look = (parts: readonly Part[]): void => {
    for (const part of parts) {
      if (part.type === 'toolResult') look(part.parts);
      if (!isMedium(part) || part.source === undefined) continue;
      const { source } = part;
      if (source.kind === 'parts') look(source.parts);
      if (source.kind !== 'url' || !/^https?:/i.test(source.url)) continue;
      const known = found.get(source.url);
      if (known !== undefined) known.times += 1;
      else if (wants(part.type, source.url)) found.set(source.url, { kind: part.type, times: 1 });
    }
  };
  for (const { parts } of conversation.messages) look(parts);
  return found;
}

/** The conversation with the substitutes in place of URLs and ids; shares everything that does not change. */
export function withMedia(conversation: Conversation, fetched: Fetched): Conversation {
  if (fetched.size === 0) return conversation;
  return { ...conversation, messages: conversation.messages.map((message) => inMessage(message, fetched)) };
}

function inMessage(message: Message, fetched: Fetched): Message {
  const parts = inParts(message.parts, fetched);
  return parts === message.parts ? message : { ...message, parts };
}

function inParts(parts: Part[], fetched: Fetched): Part[] {
  let changed = false;
  const replaced = parts.map((part) => {
    const other = inPart(part, fetched);
    if (other !== part) changed = true;
    return other;
  });
  return changed ? replaced : parts;
}

function inPart(part: Part, fetched: Fetched): Part {
  if (part.type === 'toolResult') {
    const parts = inParts(part.parts, fetched);
    return parts === part.parts ? part : { ...part, parts };
  }
  if (!isMedium(part) || part.source === undefined) return part;
  const { source } = part;
  if (source.kind === 'parts') {
    const parts = inParts(source.parts, fetched);
    return parts === source.parts ? part : { ...part, source: { kind: 'parts', parts } };
  }
  const substitute =
    source.kind === 'url' ? fetched.get(source.url) : source.kind === 'file' ? fetched.get(source.id) : undefined;
  return substitute === undefined ? part : substituted(part, substitute);
}

function substituted(part: Extract<Part, { type: MediumKind }>, { source, kind, filename }: Substitute): Part {
  const { cache, extras } = part;
  const base = { ...(cache && { cache }), ...(extras && { extras }) };
  if (kind === 'image' && part.type !== 'image') return { type: 'image', source, ...base };
  if (kind === 'audio' && part.type !== 'audio')
    return { type: 'audio', source, format: audioFormatOf(source), ...base };
  if (part.type === 'file' && part.filename === undefined && filename !== undefined)
    return { ...part, source, filename };
  return { ...part, source };
}

/** The word that formats use for a type: `mp3` for `audio/mpeg`. */
function audioFormatOf(source: Source): string {
  const name = source.kind === 'bytes' ? source.mediaType.replace(/^audio\/(?:x-)?/, '') : '';
  return name === 'mpeg' ? 'mp3' : name;
}

function isMedium(part: Part): part is Extract<Part, { type: MediumKind }> {
  return part.type === 'image' || part.type === 'file' || part.type === 'audio' || part.type === 'video';
}

/** The path of a text in a body, in the notation of error messages; undefined when absent. */
export function pathOf(value: unknown, text: string, path = ''): string | undefined {
  if (value === text) return path;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, member] of Object.entries(value)) {
    const below = Array.isArray(value) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`;
    const found = pathOf(member, text, below);
    if (found !== undefined) return found;
  }
  return undefined;
}
