/** Decodes items written by the model into parts, for replies and for the history in requests. */
import { originOf } from '../chat/details.ts';
import type { Part, ReasoningOrigin, ReasoningPart, ToolCallPart } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, listOf, restOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { unsealBlock } from '../conversation/sealed-block.ts';
import { isShownId } from '../conversation/served-call.ts';
import { decodeContent } from './decode-content.ts';

/** Key in `extras.responses` of a text part that holds the members of its message item (`id`, `phase`, `status`). */
export const MESSAGE = 'message';

const MESSAGE_ITEM = ['type', 'role', 'content'];
const CALL_ITEM = ['type', 'call_id', 'name', 'arguments', 'input'];
const REASONING_ITEM = ['type', 'id', 'summary', 'content', 'encrypted_content', 'signature', 'format', 'status'];

/** @param origin origin of the reasoning when the item names none */
function decodeItem(item: Fields, origin: ReasoningOrigin): Part[] {
  switch (item['type']) {
    case undefined:
    case null:
    case 'message':
      return decodeMessage(item);
    case 'reasoning':
      return decodeReasoning(item, origin);
    case 'function_call':
    case 'custom_tool_call':
      return [decodeCall(item)];
    default:
      if (isShownId(item['id'])) return [];
      return [imagePart(item) ?? { type: 'opaque', origin: 'responses', value: item }];
  }
}

/** Parts of consecutive items. A signature sent as a reasoning item under a call's id returns to that call. */
export function decodeItems(items: readonly unknown[], origin: ReasoningOrigin): Part[] {
  const parts = items.flatMap((item) => decodeItem(fieldsOf(item), origin));
  const calls = new Map<string, ToolCallPart>();
  for (const part of parts) if (part.type === 'toolCall') calls.set(part.id, part);
  if (calls.size === 0) return parts;
  return parts.filter((part) => {
    if (part.type !== 'reasoning' || part.id === undefined || part.encrypted === undefined) return true;
    const call = calls.get(part.id);
    if (call === undefined) return true;
    // Clients that know only OpenAI's fields (Codex and others) drop `format`. Only Gemini binds signatures to calls.
    const bound = part.origin === origin ? 'google-gemini-v1' : part.origin;
    call.signature = { value: part.encrypted, origin: bound };
    return false;
  });
}

function decodeMessage(item: Fields): Part[] {
  const about = restOf(item, MESSAGE_ITEM);
  const parts = decodeContent(item['content']);
  if (about === undefined) return parts;
  return parts.map((part) => ({
    ...part,
    extras: { ...part.extras, responses: { ...part.extras?.responses, [MESSAGE]: about } },
  }));
}

function decodeReasoning(item: Fields, otherwise: ReasoningOrigin): Part[] {
  const encrypted = textOf(item['encrypted_content']);
  const sealed = unsealBlock(encrypted);
  if (sealed !== undefined) return [sealed];
  const { format } = item;
  const origin = format === undefined || format === null ? otherwise : originOf(format);
  const id = textOrUndefined(item['id']);
  const parts: ReasoningPart[] = [];
  for (const [member, summary] of [
    ['summary', true],
    ['content', false],
  ] as const) {
    for (const entry of listOf(item[member]))
      parts.push(reasoningPart(textOf(fieldsOf(entry)['text']), origin, id, summary));
  }
  if (parts.length === 0) parts.push(reasoningPart('', origin, id, false));
  const last = parts.at(-1)!;
  if (encrypted !== '') last.encrypted = encrypted;
  if (typeof item['signature'] === 'string') last.signature = item['signature'];
  const rest = restOf(item, REASONING_ITEM);
  if (rest !== undefined) parts[0]!.extras = { responses: rest };
  return parts;
}

export function reasoningPart(
  text: string,
  origin: ReasoningOrigin,
  id: string | undefined,
  summary: boolean,
): ReasoningPart {
  return { type: 'reasoning', text, origin, ...(id !== undefined && { id }), ...(summary && { summary }) };
}

function decodeCall(item: Fields): ToolCallPart {
  const custom = item['type'] === 'custom_tool_call';
  const part: ToolCallPart = {
    type: 'toolCall',
    id: textOf(item['call_id']),
    name: textOf(item['name']),
    arguments: textOf(custom ? item['input'] : item['arguments']),
    ...(custom && { custom }),
  };
  const rest = restOf(item, CALL_ITEM);
  if (rest !== undefined) part.extras = { responses: rest };
  return part;
}

/** A generated image. The other members of its item are kept as extras. */
export function imagePart(item: Fields): Part | undefined {
  const { result } = item;
  if (item['type'] !== 'image_generation_call' || typeof result !== 'string' || result === '') return undefined;
  const format = textOrUndefined(item['output_format']) ?? 'png';
  return {
    type: 'image',
    source: { kind: 'bytes', mediaType: `image/${format}`, data: result },
    extras: { responses: restOf(item, ['result']) ?? {} },
  };
}
