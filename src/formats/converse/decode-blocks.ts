/** Decodes content blocks of a reply into parts. A block is an object with one member, named after its kind. */
import { argumentsOf } from '../conversation/call-input.ts';
import type { Part, ReasoningPart } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import { decodeCitation } from './citations.ts';

/** Assumed origin of signed or encrypted reasoning in this format: Claude. */
export const SIGNER = 'anthropic-claude-v1';

/** Unknown blocks become opaque parts that keep every member. */
export function decodeBlock(block: Fields): Part {
  if (typeof block['text'] === 'string') return { type: 'text', text: block['text'] };
  const { citationsContent, reasoningContent, toolUse, image } = block;
  if (isFields(citationsContent)) return decodeCited(citationsContent);
  if (isFields(reasoningContent)) return decodeReasoning(reasoningContent);
  if (isFields(toolUse) && isClientCall(toolUse)) {
    return {
      type: 'toolCall',
      id: textOf(toolUse['toolUseId']),
      name: textOf(toolUse['name']),
      arguments: argumentsOf(toolUse['input']),
    };
  }
  const data = fieldsOf(fieldsOf(image)['source'])['bytes'];
  if (typeof data === 'string') {
    const mediaType = `image/${textOf(fieldsOf(image)['format'])}`;
    return { type: 'image', source: { kind: 'bytes', mediaType, data } };
  }
  return { type: 'opaque', origin: 'converse', value: block };
}

/** A call for the client, as opposed to a tool that the service runs. */
export function isClientCall(toolUse: Fields): boolean {
  return toolUse['type'] !== 'server_tool_use';
}

/** False for a call without a name, which cannot be executed. Adds a missing id. */
export function completeCall(part: Part, index: number): boolean {
  if (part.type !== 'toolCall') return true;
  if (part.id === '') part.id = `call_${index}`;
  return part.name !== '';
}

function decodeCited(content: Fields): Part {
  const text = listOf(content['content']).map((piece) => textOf(fieldsOf(piece)['text']));
  const citations = listOf(content['citations']).map(decodeCitation);
  return { type: 'text', text: text.join(''), ...(citations.length > 0 && { citations }) };
}

function decodeReasoning(content: Fields): ReasoningPart {
  const redacted = content['redactedContent'];
  if (typeof redacted === 'string') return { type: 'reasoning', text: '', encrypted: redacted, origin: SIGNER };
  const { text, signature } = fieldsOf(content['reasoningText']);
  if (typeof signature !== 'string') return { type: 'reasoning', text: textOf(text), origin: 'unknown' };
  return { type: 'reasoning', text: textOf(text), signature, origin: SIGNER };
}
