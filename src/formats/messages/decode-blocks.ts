/** Decodes content blocks of requests, complete answers and streamed block starts. */
import { argumentsOf } from '../conversation/call-input.ts';
import type {
  CacheMark,
  Extras,
  FilePart,
  ImagePart,
  OpaquePart,
  Part,
  ReasoningPart,
  Source,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, restOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { unsealBlock } from '../conversation/sealed-block.ts';
import { isShownId } from '../conversation/served-call.ts';
import { decodeCitations } from './citations.ts';
import { type Sealed, unseal } from './sealed.ts';
import { ServedCalls } from './served-calls.ts';

/**
 * The author of the blocks. A `client` replays thinking of any vendor, and thinking without a signature is plain text.
 * For a `vendor`, all thinking is its own, even before its signature is received.
 */
type Author = 'client' | 'vendor';

/** The blocks of one message or answer. A sealed call signature is attached to its call. */
export function decodeBlocks(content: unknown, author: Author = 'client'): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  const parts: Part[] = [];
  const callSignatures = new Map<string, Sealed>();
  const served = author === 'vendor' ? new ServedCalls() : undefined;
  for (const block of listOf(content)) {
    const sealed = callSeal(block);
    if (sealed?.callId !== undefined) callSignatures.set(sealed.callId, sealed);
    else if (!isOnlyShown(fieldsOf(block))) {
      const part = decodeBlock(fieldsOf(block), author);
      parts.push(served?.noted(part) ?? part);
    }
  }
  for (const part of callSignatures.size === 0 ? [] : parts) {
    const sealed = part.type === 'toolCall' ? callSignatures.get(part.id) : undefined;
    if (part.type === 'toolCall' && sealed?.signature !== undefined) {
      part.signature = { value: sealed.signature, origin: sealed.origin };
    }
  }
  return parts;
}

/** Whether the block shows a client what an upstream of another format did, which no upstream can read. */
export function isOnlyShown({ type, id, tool_use_id: callId }: Fields): boolean {
  return isShownId(type === 'server_tool_use' ? id : callId);
}

/** One block. A block that the conversation does not model becomes opaque and keeps every member. */
export function decodeBlock(block: Fields, author: Author = 'client'): Part {
  switch (block['type']) {
    case 'text':
      return withBase<TextPart>(block, ['citations', 'text'], {
        type: 'text',
        text: textOf(block['text']),
        ...present('citations', decodeCitations(block['citations'])),
      });
    case 'thinking':
      return decodeThinking(block, author);
    case 'redacted_thinking':
      return decodeRedacted(block);
    case 'tool_use':
      return withBase<ToolCallPart>(block, ['id', 'input', 'name'], {
        type: 'toolCall',
        id: textOf(block['id']),
        name: textOf(block['name']),
        arguments: argumentsOf(block['input']),
      });
    case 'tool_result':
      return withBase<ToolResultPart>(block, ['content', 'is_error', 'tool_use_id'], {
        type: 'toolResult',
        callId: textOf(block['tool_use_id']),
        parts: decodeBlocks(block['content']),
        ...present('isError', typeof block['is_error'] === 'boolean' ? block['is_error'] : undefined),
      });
    case 'image':
      return decodeImage(block);
    case 'document':
      return decodeDocument(block);
    case 'search_result':
      return decodeSearchResult(block);
    default:
      return { type: 'opaque', origin: 'messages', value: block };
  }
}

/**
 * Completes a call of an answer with a unique id if the upstream gave none. Returns false for a call without a name,
 * which cannot be executed.
 */
export function completeCall(part: Part, answerId: string, index: number): boolean {
  if (part.type !== 'toolCall') return true;
  if (part.id === '') part.id = `call_${answerId}_${index}`;
  return part.name !== '';
}

export function decodeCache(value: unknown): CacheMark | undefined {
  if (!isFields(value)) return undefined;
  const ttl = value['ttl'];
  return ttl === '5m' || ttl === '1h' ? { ttl } : {};
}

function decodeThinking(block: Fields, author: Author): ReasoningPart {
  const text = textOf(block['thinking']);
  const signature = textOf(block['signature']);
  const own = { ...(signature !== '' && { signature }), origin: 'anthropic-claude-v1' as const };
  const sealed = signature === '' && author === 'client' ? { origin: 'unknown' as const } : unseal(signature);
  return withBase<ReasoningPart>(block, ['signature', 'thinking'], { type: 'reasoning', text, ...(sealed ?? own) });
}

function decodeRedacted(block: Fields): ReasoningPart | OpaquePart {
  const data = textOf(block['data']);
  const foreign = unsealBlock(data);
  if (foreign !== undefined) return foreign;
  const own = unseal(data) ?? { encrypted: data, origin: 'anthropic-claude-v1' as const };
  return withBase<ReasoningPart>(block, ['data'], { type: 'reasoning', text: '', ...own });
}

function decodeImage(block: Fields): Part {
  const source = decodeSource(fieldsOf(block['source']));
  if (source === undefined) return { type: 'opaque', origin: 'messages', value: block };
  return withBase<ImagePart>(block, ['source'], { type: 'image', source });
}

function decodeDocument(block: Fields): Part {
  const source = decodeSource(fieldsOf(block['source']));
  if (source === undefined) return { type: 'opaque', origin: 'messages', value: block };
  const citations = fieldsOf(block['citations'])['enabled'];
  return withBase<FilePart>(block, ['citations', 'context', 'source', 'title'], {
    type: 'file',
    source,
    ...present('filename', textOrUndefined(block['title'])),
    ...present('context', textOrUndefined(block['context'])),
    ...present('citations', typeof citations === 'boolean' ? citations : undefined),
  });
}

/** A search result is a document of several texts. */
function decodeSearchResult(block: Fields): FilePart {
  const citations = fieldsOf(block['citations'])['enabled'];
  const part = withBase<FilePart>(block, ['citations', 'content', 'source', 'title'], {
    type: 'file',
    source: { kind: 'parts', parts: decodeBlocks(block['content']) },
    ...present('address', textOrUndefined(block['source'])),
    ...present('filename', textOrUndefined(block['title'])),
    ...present('citations', typeof citations === 'boolean' ? citations : undefined),
  });
  part.extras = { messages: { ...part.extras?.messages, type: 'search_result' } };
  return part;
}

function decodeSource(source: Fields): Source | undefined {
  switch (source['type']) {
    case 'base64':
      return { kind: 'bytes', mediaType: textOf(source['media_type']), data: textOf(source['data']) };
    case 'url':
      return { kind: 'url', url: textOf(source['url']) };
    case 'text':
      return { kind: 'text', text: textOf(source['data']), mediaType: textOf(source['media_type']) || 'text/plain' };
    case 'content':
      return { kind: 'parts', parts: decodeBlocks(source['content']) };
    case 'file':
      return { kind: 'file', id: textOf(source['file_id']), origin: 'messages' };
    default:
      return undefined;
  }
}

function callSeal(block: unknown): Sealed | undefined {
  if (!isFields(block) || block['type'] !== 'redacted_thinking') return undefined;
  return unseal(textOf(block['data']));
}

/** Adds the cache mark and the unmodeled members. */
function withBase<P extends Part>(block: Fields, known: readonly string[], part: P): P {
  const cache = decodeCache(block['cache_control']);
  if (cache !== undefined) part.cache = cache;
  const rest = restOf(block, [...known, 'cache_control', 'type']);
  if (rest !== undefined) part.extras = { messages: rest } satisfies Extras;
  return part;
}

function present<K extends string, V>(key: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [key in K]?: V });
}
