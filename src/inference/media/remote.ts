/** Finds the media that a conversation references by URL, and replaces the URLs with the fetched bytes. Pure. */
import type { Conversation, Message, Part, Source } from '../../formats/conversation/conversation.ts';
import type { MediumKind } from '../../formats/conversation/format.ts';

type Wants = (kind: MediumKind, url: string) => boolean;
export type Fetched = ReadonlyMap<string, Source>;

/** The URLs that `wants` selects, each once, in order, with the kind of the first part that uses it. */
export function remoteMedia(conversation: Conversation, wants: Wants): Map<string, MediumKind> {
  const found = new Map<string, MediumKind>();
  const look = (parts: readonly Part[]): void => {
    for (const part of parts) {
      if (part.type === 'toolResult') look(part.parts);
      if (!isMedium(part) || part.source === undefined) continue;
      const { source } = part;
      if (source.kind === 'parts') look(source.parts);
      if (source.kind !== 'url' || found.has(source.url) || !/^https?:/i.test(source.url)) continue;
      if (wants(part.type, source.url)) found.set(source.url, part.type);
    }
  };
  for (const { parts } of conversation.messages) look(parts);
  return found;
}

/** The conversation with the fetched bytes in place of URLs; shares everything that does not change. */
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
  const bytes = source.kind === 'url' ? fetched.get(source.url) : undefined;
  return bytes === undefined ? part : { ...part, source: bytes };
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
